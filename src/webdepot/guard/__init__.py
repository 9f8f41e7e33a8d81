"""Child processes for hostile bytes: limits that the parent enforces (`process`), walls that the kernel
enforces (`walls`), and an environment without secrets (`environment`).
"""
