// SPDX-License-Identifier: GPL-2.0
// Counts the packets that the kernel drops, by reason, device and network namespace. Nothing of a packet is kept.
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

// As much of the kernel's own structures as is read here; CO-RE finds the fields.
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct sock_common {
	possible_net_t skc_net;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
} __attribute__((preserve_access_index));

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
} __attribute__((preserve_access_index));

struct where {
	__u32 reason, device, space;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct where);
	__type(value, __u64);
} dropped SEC(".maps");

// How many drops there was no room for.
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unplaced SEC(".maps");

SEC("tp_btf/kfree_skb")
int BPF_PROG(on_drop, struct sk_buff *skb, void *location, unsigned int reason)
{
	struct where at = {.reason = reason};
	struct net_device *device = skb->dev;
	__u64 one = 1, *count;

	if (device) {
		at.device = device->ifindex;
		at.space = device->nd_net.net->ns.inum;
	} else {
		struct sock *socket = skb->sk;

		if (socket)
			at.space = socket->__sk_common.skc_net.net->ns.inum;
	}
	count = bpf_map_lookup_elem(&dropped, &at);
	if (count) {
		__sync_fetch_and_add(count, 1);
		return 0;
	}
	if (bpf_map_update_elem(&dropped, &at, &one, BPF_NOEXIST) == 0)
		return 0;
	count = bpf_map_lookup_elem(&dropped, &at); // another processor was faster, or there is no room
	if (!count) {
		__u32 zero = 0;

		count = bpf_map_lookup_elem(&unplaced, &zero);
	}
	if (count)
		__sync_fetch_and_add(count, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
