#!/usr/bin/env bash
# arm64.sh gets what a guest with an arm64 processor is made of, for the test of servers of that architecture: QEMU, Debian's kernel,
# busybox and the SSH server dropbear. They are unpacked below ~/.cache/netdelta/arm64 and not installed; once they are there it does
# nothing. QEMU's libraries are those of the usual guest's image (netdelta vm build), and so is the suite.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/netdelta
dir=$cache/arm64
if [[ -e $dir/whole ]]; then exit 0; fi
if [[ ! -e $cache/vm/current ]]; then
	(cd "$(dirname "${BASH_SOURCE[0]}")/.." && CGO_ENABLED=0 go run ./cmd/netdelta vm build)
fi
image=$cache/vm/$(<"$cache/vm/current")
suite=$(sed -n 's/^ *"suite": "\(.*\)",$/\1/p' "$image/image.json")
qemu=$(sed -n 's/^ *"qemu": "\(.*\)",$/\1/p' "$image/image.json")

rm -rf "$dir"
mkdir -p "$dir"/{lists/partial,host,guest,debs}
: >"$dir/status" # nothing is installed of that architecture
here=(-q -c "$cache/vm/apt/apt.conf" -o "APT::Default-Release=$suite")
there=("${here[@]}" -o "Dir::State::lists=$dir/lists" -o "Dir::State::status=$dir/status" -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache="
	-o APT::Architecture=arm64 -o APT::Architectures=arm64)
cd "$dir/debs"
apt-get "${here[@]}" download "qemu-system-arm=$qemu"
apt-get "${there[@]}" update
kernel=$(apt-cache "${there[@]}" show --no-all-versions linux-image-cloud-arm64 | sed -n 's/^Depends:.*\(linux-image-[0-9][^ ]*\).*/\1/p' | head -n 1)
apt-get "${there[@]}" download "$kernel" busybox-static dropbear-bin libc6 libcrypt1 libtomcrypt1 libtommath1 libgmp10 zlib1g
for deb in *.deb; do
	case $deb in *_amd64.deb) dpkg-deb -x "$deb" "$dir/host" ;; *) dpkg-deb -x "$deb" "$dir/guest" ;; esac
done
rm -rf "$dir/debs" "$dir/lists"
touch "$dir/whole"
