# Sourced by scripts/parity-check, scripts/test and scripts/lint: installs what is missing, configures, builds. Everything lands in the repository's folder
# (.venv, build) except Debian packages. Needs no root when the packages are there.
#   PARITY_PRESET   CMake preset (default: release)
#   PARITY_VENV     where LibTorch's wheel is installed (default: .venv); an installed LibTorch: set CMAKE_PREFIX_PATH instead
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=${PARITY_PRESET:-release}
venv=${PARITY_VENV:-$root/.venv}
build=$root/build/$preset

packages=(g++ cmake ninja-build ccache git libhdf5-dev libeigen3-dev libcli11-dev libfmt-dev nlohmann-json3-dev
  doctest-dev libhwy-dev libssl-dev libzip-dev libonnx-dev libprotobuf-dev pkg-config gnuplot-nox python3-venv
  libjs-chart.js libopencv-core-dev libopencv-imgproc-dev libopencv-imgcodecs-dev libavformat-dev libavcodec-dev libswscale-dev)
torch_requirement="torch==2.13.0"  # exactly this one is the CPU build

say() { printf '\033[2m[%s]\033[0m %s\n' "parity-check" "$*" >&2; }
die() { printf 'parity-check: %s\n' "$*" >&2; exit 2; }

install_packages() {  # the named Debian packages that are missing
  local missing=() name installed
  # Asked once: dpkg-query reads its whole list each time, .35 s of each start for 26 packages. Nothing but "missing" where it knows none of them.
  installed=$(dpkg-query -W -f='${Package} ${Status}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    [[ $'\n'$installed$'\n' == *$'\n'"$name install ok installed"$'\n'* ]] || missing+=("$name")
  done
  ((${#missing[@]} == 0)) && return
  local command=(apt-get install -y --no-install-recommends "${missing[@]}") prefix=()
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then prefix=(sudo)
    else die "packages are missing; run: sudo apt-get update && sudo ${command[*]}"; fi
  fi
  say "installing ${missing[*]}"
  "${prefix[@]}" apt-get update -qq >&2 || say "apt-get update failed; trying with the lists that are there"
  DEBIAN_FRONTEND=noninteractive "${prefix[@]}" "${command[@]}" -qq >&2 || die "cannot install; run: sudo ${command[*]}"
}

make_venv() {  # folder, stamp text, pip arguments…: a venv with exactly these installed
  local folder=$1 stamp=$2; shift 2
  [[ -f $folder/.parity-stamp && $(<"$folder/.parity-stamp") == "$stamp" ]] && return
  say "installing ${stamp//$'\n'/, } into ${folder#"$root"/} (once)"
  rm -f "$folder/.parity-stamp"
  [[ -x $folder/bin/python ]] || python3 -m venv "$folder" >&2 || die "cannot make a Python environment in $folder; is python3-venv installed?"
  # --no-compile: bytecode for all of torch takes longer than unpacking it, and little of it is ever imported
  "$folder/bin/pip" install --disable-pip-version-check --quiet --no-compile "$@" >&2 || die "cannot install $stamp; run: $folder/bin/pip install $*"
  printf '%s' "$stamp" >"$folder/.parity-stamp"
}

libtorch_in() { echo "$1"/lib/python3*/site-packages/torch/share/cmake; }  # a venv with torch

configure_and_build() {  # targets…
  if [[ -z ${CMAKE_PREFIX_PATH:-} && -z ${Torch_DIR:-} ]]; then
    make_venv "$venv" "$torch_requirement" "$torch_requirement" numpy
    CMAKE_PREFIX_PATH=$(libtorch_in "$venv")
    export CMAKE_PREFIX_PATH
  fi
  if [[ ! -f $build/build.ninja || $root/CMakePresets.json -nt $build/build.ninja ]]; then
    say "configuring ($preset)"
    (cd "$root" && cmake --preset "$preset" >"/tmp/parity-configure-$$.log" 2>&1) ||
      { cat "/tmp/parity-configure-$$.log" >&2; rm -f "/tmp/parity-configure-$$.log"; die "cmake --preset $preset failed"; }
    rm -f "/tmp/parity-configure-$$.log"
  fi
  local target targets=()
  for target in "$@"; do targets+=(--target "$target"); done
  # -n tells in 0.1 s whether anything is to be done: later calls start at once and print nothing.
  if ! ninja -C "$build" -n "$@" 2>/dev/null | grep -q 'no work to do'; then
    say "building $* ($preset)"
    cmake --build "$build" "${targets[@]}" -j "${PARITY_JOBS:-$(nproc)}" >&2 || die "the build failed (see above)"
  fi
}
