def write(lines): pass
