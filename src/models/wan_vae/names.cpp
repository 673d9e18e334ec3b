#include <string>

namespace parity {}
