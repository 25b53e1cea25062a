#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh NAME MTU UDP_MESSAGE RECORD_BUFFER [register] < calls: both ends of a veth pair captured into NAME.client.pcapng
# and NAME.server.pcapng, samples into NAME.jsonl. Each line of `calls` is `STEP client-arguments`. Needs root, libtirpc,
# dumpcap, ethtool, and rpcbind for `register`; everything happens in two network namespaces of its own.
set -eu
name=$1 mtu=$2 message=$3 buffer=$4 register=${5:-}
c=sundial-c-$$ s=sundial-s-$$
first='' second='' server='' mapper=''
# shellcheck disable=SC2086 # empty ones are not there
trap 'kill $server $first $second $mapper || true; ip netns del "$c"; ip netns del "$s"' EXIT
ip netns add "$c"; ip netns add "$s"
ip link add v0 mtu "$mtu" netns "$c" type veth peer name v1 mtu "$mtu" netns "$s"
end() {
    ip netns exec "$1" sysctl -qw net.ipv6.conf.all.disable_ipv6=1
    ip -n "$1" link set "$2" address "$4"
    ip -n "$1" addr add "$3/24" dev "$2"
    ip -n "$1" link set "$2" up
    ip -n "$1" link set lo up
    ip netns exec "$1" ethtool -K "$2" tso off gso off gro off tx off rx off > /dev/null
}
end "$c" v0 10.0.0.1 02:53:44:00:00:01
end "$s" v1 10.0.0.2 02:53:44:00:00:02
if [ -n "$register" ]; then ip netns exec "$s" rpcbind -f -w & mapper=$!; sleep 1; fi
# shellcheck disable=SC2086  # empty, or one word
ip netns exec "$s" ./server 20049 "$message" "$buffer" $register & server=$!
ip netns exec "$c" dumpcap -q -i v0 -w "$PWD/$name.client.pcapng" 2> /dev/null & first=$!
ip netns exec "$s" dumpcap -q -i v1 -w "$PWD/$name.server.pcapng" 2> /dev/null & second=$!
sleep 2
while read -r step arguments; do
    # shellcheck disable=SC2086 # the words of a line are the arguments
    STEP=$step ip netns exec "$c" ./client $arguments
done > "$name.jsonl"
sleep 2
kill -INT "$first" "$second"
wait "$first" "$second" || true
