#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing and builds everything; run by `make setup`, which every other target needs.
# Touches nothing outside the checkout but distribution packages, and asks for no root where they are present. SUNDIAL_CACHE
# names a folder that checkouts of one host share for Python's environment, images and snapshots, which the digest of their
# inputs keeps apart; `setup.sh snapshots` copies this checkout's snapshots there.
set -eu

cd "$(dirname "$0")/.."
stamps=.sundial/setup
out=${SUNDIAL_STATE:-.}/images/out
mkdir -p "$stamps"

# One set-up of a part at a time: a second one would remove what the first is filling.
if [ -z "${SUNDIAL_SETUP_LOCKED:-}" ]; then
    export SUNDIAL_SETUP_LOCKED=1
    [ $# -gt 0 ] || set -- packages python programs images
    for part in "$@"; do
        status=0
        flock --exclusive --nonblock --close --conflict-exit-code 75 "$stamps/lock-$part" harness/setup.sh "$part" || status=$?
        if [ "$status" = 75 ]; then
            printf 'setup: waiting for another set-up of this checkout\n' >&2
            flock --exclusive --close "$stamps/lock-$part" harness/setup.sh "$part" || exit $?
        elif [ "$status" != 0 ]; then
            exit "$status"
        fi
    done
    exit 0
fi

say() { printf 'setup: %s\n' "$1" >&2; }
fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 3
}

# What a run needs; then what only tests need (WITH_TESTS=1), what benchmarks compare with (WITH_BENCH=1), and what
# building a kernel takes (SUNDIAL_RECIPE=tuned, as make KERNEL=tuned sets it).
packages="qemu-system-x86 libvirt-daemon libvirt-daemon-driver-qemu python3-libvirt python3-venv tshark \
gcc g++ libc6-dev binutils make patch cpio xz-utils lz4 zstd libtirpc-dev rpcsvc-proto libjansson-dev"
test_packages="libvirt-clients openssh-server chromium fonts-dejavu-core poppler-utils clang cppcheck shellcheck"
bench_packages="vde2"
kernel_packages="flex bison bc libelf-dev perl-base"
# What a Buildroot release asks of its host (SUNDIAL_RECIPE=buildroot, as make BUILDROOT=DIR sets it).
buildroot_packages="bc bzip2 cpio file g++ make patch perl rsync unzip wget"

# The first of these by the names of other distributions.
fedora_packages="qemu-system-x86-core libvirt-daemon-driver-qemu python3-libvirt wireshark-cli \
gcc gcc-c++ glibc-devel binutils make patch cpio xz lz4 zstd libtirpc-devel rpcgen jansson-devel"
arch_packages="qemu-system-x86 libvirt libvirt-python wireshark-cli \
gcc binutils make patch cpio xz lz4 zstd libtirpc rpcsvc-proto jansson"

missing_packages() {
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || printf ' %s' "$package"
    done
}

# What the packages bring, for systems without dpkg.
missing_parts() {
    for program in qemu-system-x86_64 tshark gcc g++ ld make patch cpio xz lz4 zstd rpcgen; do
        command -v "$program" >/dev/null || printf ' %s' "$program"
    done
    for header in tirpc/rpc/rpc.h jansson.h; do
        [ -e "/usr/include/$header" ] || printf ' %s' "$header"
    done
    for module in libvirt ensurepip; do
        /usr/bin/python3 -c "import $module" 2>/dev/null || printf ' %s (Python)' "$module"
    done
}

# The host's distribution and those that it is like, each between spaces.
distributions() { printf ' %s ' "$(sed -n 's/^ID\(_LIKE\)*=//p' /etc/os-release 2>/dev/null | tr '\n"' '  ')"; }

check_parts() {
    missing=$(missing_parts)
    [ -n "$missing" ] || return 0
    case $(distributions) in
        *" fedora "*) by="as root: dnf install $fedora_packages" ;;
        *" arch "*) by="as root: pacman -S --needed $arch_packages" ;;
        *) by="Debian's packages are $packages" ;;
    esac
    fail "missing on this host:$missing; $by"
}

# The user's way to root. Fails for packages ($1) that a user without one has to ask for.
become_root() {
    become=
    if [ "$(id -u)" != 0 ]; then
        become="sudo -n"
        # sudo asks for the password where someone can answer.
        [ ! -t 0 ] || become=sudo
        $become true 2>/dev/null || fail "no right to install packages; as root: apt-get install --no-install-recommends$1"
    fi
}

# Where there is no Rust: Debian's packages that are new enough. By those for the web Debian builds browsers; stable
# releases get new versions of them.
rust_packages() {
    for names in "cargo rust-clippy rustfmt" "cargo-web rustc-web rust-web-clippy rustfmt-web"; do
        version=$(apt-cache show --no-all-versions "${names%% *}" 2>/dev/null | sed -n 's/^Version: //p')
        if [ -n "$version" ] && dpkg --compare-versions "$version" ge "$1"; then
            printf '%s' "$names"
            return
        fi
    done
}

install_packages() {
    command -v dpkg-query >/dev/null || return 0 # check_parts has asked
    # shellcheck disable=SC2086  # a list of words on purpose
    missing=$(missing_packages $1)
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null || fail "no apt-get here; install these packages by hand:$missing"
    become_root "$missing"
    say "installing$missing"
    log=$stamps/apt.log
    # A list of packages may be missing or old: refresh it once, then install.
    # shellcheck disable=SC2086
    { $become apt-get update && $become env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1 ||
        fail "apt-get could not install$missing (see $log): $(grep -m1 '^E:' "$log" || tail -n 1 "$log")"
}

# Runs a step unless its inputs are as they were; $1 names it, $2 is what it depends on, the rest is the command.
once() {
    name=$1 key=$2
    shift 2
    [ -f "$stamps/$name" ] && [ "$(cat "$stamps/$name")" = "$key" ] && return 0
    "$@"
    printf '%s\n' "$key" >"$stamps/$name"
}

environment_mib=600

python_environment() {
    say "making the Python environment in .venv"
    rm -rf .venv
    free=$(df --output=avail --block-size=1M . | tail -n 1)
    [ "$free" -ge "$environment_mib" ] || fail "the disk is full: the Python environment takes $environment_mib MiB, and $((free)) MiB are free in $PWD"
    cached=${SUNDIAL_CACHE:+$SUNDIAL_CACHE/python}
    if [ -n "$cached" ] && [ "$(cat "$cached/inputs" 2>/dev/null)" = "$python_inputs" ]; then
        from_cache cp -a "$cached/venv" .venv
        # Scripts begin with the path of the environment that they were installed in.
        grep -rlIZ "$(cat "$cached/place")" .venv/bin | xargs -0r sed -i "s|$(cat "$cached/place")|$PWD/.venv|g"
    else
        # The system's Python, for libvirt's binding belongs to it.
        /usr/bin/python3 -m venv --system-site-packages .venv >&2 || fail "/usr/bin/python3 could not make .venv"
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r harness/requirements.lock ||
            fail "pip could not install harness/requirements.lock"
        [ -z "$cached" ] || cache_python
    fi
    printf '%s\n' "$PWD/harness" >"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/sundial.pth"
}

# Set-ups of several checkouts share SUNDIAL_CACHE: none exchanges a folder that another one copies.
from_cache() { flock --shared --close "$SUNDIAL_CACHE/.lock" "$@"; }

# Gives a whole new folder in SUNDIAL_CACHE ($1) its name there ($2).
put() {
    # shellcheck disable=SC2016  # another shell's words
    flock --exclusive --close "$SUNDIAL_CACHE/.lock" sh -c 'rm -rf "$2" && mv "$1" "$2"' put "$1" "$SUNDIAL_CACHE/$2"
}

cache_python() {
    mkdir -p "$SUNDIAL_CACHE"
    new=$(mktemp -d "$SUNDIAL_CACHE/python.XXXXXX")
    cp -a .venv "$new/venv"
    printf '%s\n' "$PWD/.venv" >"$new/place"
    printf '%s\n' "$python_inputs" >"$new/inputs"
    put "$new" python
}

# ---- The parts ----

# Before anything is installed, for packages are 80 MB.
check_images() {
    [ "${WITH_IMAGES:-1}" != 0 ] || return 0
    [ ! -d "$out" ] && [ ! -d "${SUNDIAL_CACHE:-/nonexistent}/images" ] || return 0
    instead="copy images/out of an x86-64 host with Debian to $PWD/images, or set WITH_IMAGES=0"
    processor=$(uname -m)
    [ "$processor" = x86_64 ] || fail "this host is $processor, and images of guests are built on x86-64 hosts: $instead"
    case $(distributions) in
        *" ubuntu "*) fail "this host has Ubuntu's packages, and images of guests are made from Debian's: $instead" ;;
    esac
}

part_packages() {
    check_images
    needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' harness/fabric/Cargo.toml)
    found=$(cargo --version 2>/dev/null | cut -d' ' -f2)
    if [ -z "$found" ] && command -v apt-get >/dev/null; then
        # shellcheck disable=SC2086
        become_root "$(missing_packages $packages) cargo-web rustc-web"
        # A new system has no lists of packages yet.
        apt-cache show cargo-web >/dev/null 2>&1 || $become apt-get update >"$stamps/apt.log" 2>&1 || true
        install_packages "$(rust_packages "$needed")"
        found=$(cargo --version 2>/dev/null | cut -d' ' -f2)
    fi
    printf '%s\n%s\n' "$needed" "$found" | sort -C -V ||
        fail "cargo is ${found:-missing}: install Rust $needed or newer (by rustup; on Debian 12 and 13 also by the packages cargo-web and rustc-web)"
    command -v dpkg-query >/dev/null || check_parts
    install_packages "$packages"
    [ "${WITH_TESTS:-}" != 1 ] || install_packages "$test_packages"
    # check-style reads every crate of the lock file offline, those for other systems too; building fetches only its own.
    [ "${WITH_TESTS:-}" != 1 ] || cargo fetch --quiet --locked --manifest-path harness/fabric/Cargo.toml >&2 || fail "cargo could not fetch the crates of harness/fabric"
    [ "${WITH_BENCH:-}" != 1 ] || install_packages "$bench_packages"
    [ "${SUNDIAL_RECIPE:-}" != tuned ] || install_packages "$kernel_packages"
    [ "${SUNDIAL_RECIPE:-}" != buildroot ] || install_packages "$buildroot_packages"
    /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "/usr/bin/python3 is older than 3.11"
}

part_python() {
    python_inputs="$(sha256sum harness/requirements.lock | cut -d' ' -f1) $(/usr/bin/python3 --version)"
    once python "$python_inputs $PWD" python_environment
}

part_programs() {
    make --no-print-directory -s -C harness/clock >&2
    make --no-print-directory -s -C harness/confine >&2
    harness/fabric/cargo.sh build --quiet --release --locked --manifest-path harness/fabric/Cargo.toml >&2 || fail "cargo could not build harness/fabric"
}

python_image() {
    status=0
    ./sundial images build --if-needed linux-python >&2 || status=$?
    [ "$status" != 3 ] || say "tests that boot linux-python are skipped"
    [ "$status" = 0 ] || [ "$status" = 3 ] || exit "$status"
}

part_images() {
    [ "${WITH_IMAGES:-1}" != 0 ] || return 0
    cached=${SUNDIAL_CACHE:+$SUNDIAL_CACHE/images}
    # An image whose inputs have another digest than the cached one is built.
    [ -z "$cached" ] || [ -d "$out" ] || [ ! -d "$cached" ] || { mkdir -p "${out%/*}" && from_cache cp -a "$cached" "$out"; }
    [ -z "$cached" ] || [ -d "$out/snapshots" ] || [ ! -d "$SUNDIAL_CACHE/snapshots" ] ||
        from_cache cp -a "$SUNDIAL_CACHE/snapshots" "$out/"
    ./sundial images build --if-needed >&2
    # The first run would do it. Without, only the real clock is left.
    ./sundial doctor --certify --if-needed >&2 || say "only runs with --clock real work with this QEMU"
    # Runs would build it on demand; tests that need it are skipped without.
    [ "${WITH_TESTS:-}" != 1 ] || python_image
    [ -z "$cached" ] || cache_images
}

# Copied, since a run checks that nothing else has touched its snapshots; QEMU's version is part of their names.
part_snapshots() {
    [ -d "$out/snapshots" ] || return 0
    new=$(mktemp -d "$SUNDIAL_CACHE/snapshots.XXXXXX")
    chmod 755 "$new"
    cp -a "$out/snapshots/." "$new"
    put "$new" snapshots
}

cache_images() {
    mkdir -p "$SUNDIAL_CACHE"
    new=$(mktemp -d "$SUNDIAL_CACHE/images.XXXXXX")
    chmod 755 "$new" # QEMU's user reads images
    for folder in "$out"/*; do
        [ "$folder" = "$out/snapshots" ] || cp -a "$folder" "$new/"
    done
    put "$new" images
}

"part_$1"
