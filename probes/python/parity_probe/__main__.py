"""python -m parity_probe"""
import sys

from .command_line import main

sys.exit(main())
