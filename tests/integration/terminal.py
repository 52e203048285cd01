"""A terminal for a test, also where no /dev/pts is mounted, as in a bare root."""

import ctypes
import fcntl
import os

# Of Linux, the same on every architecture.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_FSCONFIG_SET_STRING, _FSCONFIG_CMD_CREATE = 1, 6
_TIOCSPTLCK, _TIOCGPTPEER = 0x40045431, 0x5441


def open_terminal():
    """As os.openpty."""
    try:
        return os.openpty()
    except OSError:
        return _open_in_a_mount_of_its_own()


def _open_in_a_mount_of_its_own():
    """Needs root. The mount has no place in the tree, and goes with the last that is open in it."""
    filesystem = _call(_FSOPEN, b"devpts", 0)
    _call(_FSCONFIG, filesystem, _FSCONFIG_SET_STRING, b"ptmxmode", b"0666", 0)
    _call(_FSCONFIG, filesystem, _FSCONFIG_CMD_CREATE, None, None, 0)
    mount = _call(_FSMOUNT, filesystem, 0, 0)
    terminal = os.open("ptmx", os.O_RDWR | os.O_NOCTTY, dir_fd=mount)
    fcntl.ioctl(terminal, _TIOCSPTLCK, (0).to_bytes(4, "little"))
    side = fcntl.ioctl(terminal, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
    os.close(mount)
    os.close(filesystem)
    return terminal, side


def _call(number, *arguments):
    result = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"there is no /dev/pts, and none can be had: {os.strerror(error)}")
    return result
