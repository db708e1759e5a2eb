#!/bin/sh
while [ $# -gt 0 ]; do
	case $1 in
	--role) role=$2 ;;
	--address) address=$2 ;;
	--gtid) gtid=$2 ;;
	--bypass) bypass=yes ;;
	esac
	shift
done
case $role in
joiner)
	echo "ready $address/seeded"
	cat {position}
	;;
donor)
	if [ -z "$bypass" ]; then
		echo "the node that joins has missed more than is kept" >&2
		exit 22
	fi
	echo "done $gtid"
	;;
esac
