"""Whole-cluster simulations with one fault of the code, made on purpose."""

load("//third_party/bazel:conclave.bzl", "conclave_cc_test")

def canary(name, source, caught_by):
    """A test that the simulation notices the fault described in <name>.edit.

    Args:
      name: of the edit.
      source: the file it is made in, exported by its package.
      caught_by: a part of what the invariant says that should notice.

    The faulty copy is linked before the libraries: it defines everything that the object of the
    right source does, so the linker never takes that from its archive.
    """
    native.genrule(
        name = name + "_source",
        srcs = [
            source,
            name + ".edit",
        ],
        outs = [name + ".cc"],
        cmd = "/usr/bin/python3 $(location mutate.py) $(location %s) $(location %s.edit) $@" %
              (source, name),
        tools = ["mutate.py"],
        testonly = True,
    )
    conclave_cc_test(
        name = name + "_canary_test",
        size = "medium",
        srcs = [
            "canary_test.cc",
            name + ".cc",
        ],
        # A fault may leave unused what the right code uses.
        copts = ["-Wno-error"],
        args = [
            name,
            "'" + caught_by + "'",
        ],
        # The copy includes what its library may and this test may not.
        features = ["-layering_check"],
        deps = [
            "//tests/simulation/cluster:simulation",
            "@system//:glog",
        ],
    )
