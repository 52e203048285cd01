"""Takes away what a process that was killed had not made durable, as a loss of power may.

The process ran with sync_journal.cc preloaded. Of its files the synced length is kept, of its
directories the entries they had when they were synced last; everything else is gone: the worst that
a disk may do to it, but for garbage.
"""

import os
import shutil


class PowerLoss:
    """One directory, whose processes are run with `environment()`. The journal and what it keeps
    stand beside the directory."""

    def __init__(self, root, library):
        self.root = os.path.abspath(root)
        self.library = library
        self.journal = self.root + ".journal"
        self.begin()

    def environment(self):
        return {**os.environ, "LD_PRELOAD": self.library, "CONCLAVE_SYNC_JOURNAL": self.journal}

    def begin(self):
        """What is there now is durable, as after a sync of everything. No process runs."""
        for path in self._kept().values():
            os.unlink(path)
        lines = []
        for directory, names, files in os.walk(self.root):
            entries = []
            for name in names + files:
                status = os.lstat(os.path.join(directory, name))
                entries.append(f" {name}/{status.st_ino}")
                if name in files:
                    lines.append(f"F {status.st_ino} {status.st_size}\n")
            lines.append(f"D {os.stat(directory).st_ino}{''.join(entries)}\n")
        with open(self.journal, "w", encoding="utf-8") as file:
            file.writelines(lines)

    def lose_power(self):
        """No process runs. Returns how many bytes and names are gone."""
        sizes, directories = self._read_journal()
        places = {**self._kept(), **self._places()}
        lost = {"bytes": 0, "names": 0}
        made = self.root + ".made"
        shutil.rmtree(made, ignore_errors=True)
        self._make(made, os.stat(self.root).st_ino, sizes, directories, places, lost)
        survivors = sum(len(names) + len(files) for _, names, files in os.walk(made))
        lost["names"] = len(self._places()) - survivors
        old = self.root + ".old"
        os.rename(self.root, old)
        os.rename(made, self.root)
        shutil.rmtree(old)
        self.begin()
        return lost

    def close(self):
        for path in [*self._kept().values(), self.journal]:
            os.unlink(path)

    def _make(self, to, inode, sizes, directories, places, lost):
        os.mkdir(to)
        for name, entry in directories.get(inode, {}).items():
            path = os.path.join(to, name)
            place = places.get(entry)
            if place is None:
                raise AssertionError(f"{path}: inode {entry} was durable and is nowhere")
            if os.path.isdir(place):
                self._make(path, entry, sizes, directories, places, lost)
                continue
            os.link(place, path)
            durable = sizes.get(entry, 0)
            size = os.path.getsize(path)
            if size > durable:
                lost["bytes"] += size - durable
                os.truncate(path, durable)

    def _places(self):
        places = {}
        for directory, names, files in os.walk(self.root):
            for name in names + files:
                path = os.path.join(directory, name)
                places[os.lstat(path).st_ino] = path
        return places

    def _kept(self):
        parent, prefix = os.path.split(self.journal + ".kept.")
        return {int(name[len(prefix):]): os.path.join(parent, name)
                for name in os.listdir(parent) if name.startswith(prefix)}

    def _read_journal(self):
        sizes, directories = {}, {}
        with open(self.journal, encoding="utf-8") as file:
            for line in file:
                kind, inode, *rest = line.rstrip("\n").split(" ")
                inode = int(inode)
                if kind == "F":
                    sizes[inode] = int(rest[0])
                elif kind == "T":
                    if inode in sizes:
                        sizes[inode] = min(sizes[inode], int(rest[0]))
                elif kind == "D":
                    directories[inode] = {
                        entry.rpartition("/")[0]: int(entry.rpartition("/")[2]) for entry in rest}
                elif kind == "R":
                    directories.pop(inode, None)
        return sizes, directories
