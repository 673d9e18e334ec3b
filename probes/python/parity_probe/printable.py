"""What stands in a file must not move the terminal's cursor, begin a line of its own or turn text around."""


def printable(text):
    r"""`text` on one line: control characters and marks that are not to be seen become escapes such as \x1b or \u202e."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(text))
