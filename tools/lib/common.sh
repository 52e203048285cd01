# Shared by the scripts in tools/: where we are, what is installed, how to build.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

# Installs the Debian packages in tools/lib/packages that are missing.
install_packages() {
  missing=""
  for package in $(grep -v '^#' tools/lib/packages); do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  say "installing:$missing"
  sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "these packages are missing and only root can install them:$missing"
    sudo=sudo
  fi
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq || fail "apt-get update failed; is there a network, and a Debian mirror in /etc/apt?"
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 ||
    fail "apt-get could not install:$missing"
}

# Debian's Bazel finds the JDK by `javac`'s link, which a minimal root may lack.
use_java() {
  [ -n "${JAVA_HOME:-}" ] && return 0
  for home in /usr/lib/jvm/java-1.17.0-openjdk-* /usr/lib/jvm/java-17-openjdk-*; do
    if [ -d "$home" ]; then
      export JAVA_HOME="$home"
      return 0
    fi
  done
}

# Bazel, without the chatter that Debian's sandbox helper writes, and with a cache of built files
# where CONCLAVE_BAZEL_CACHE names a directory.
run_bazel() {
  use_java
  local verb=$1
  shift
  local cache=""
  [ -z "${CONCLAVE_BAZEL_CACHE:-}" ] || cache="--disk_cache=$CONCLAVE_BAZEL_CACHE"
  local status=0
  set +e
  # shellcheck disable=SC2086
  bazel "$verb" $cache "$@" 2>&1 |
    grep -v -e 'linux-sandbox' -e '^Loading:' -e '^Analyzing:' -e '^INFO: From ' >&2
  status=${PIPESTATUS[0]}
  set -e
  return "$status"
}
