// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* A policy: what may come in through a device, by the source's address. */
#include "packet.h"
#include <linux/icmpv6.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Its size is set when it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, __u32); /* 1 accepts */
} sources SEC(".maps");

/* serves tells whether a packet serves IPv6 itself: routers and neighbours finding each other, and reports of groups. */
static __always_inline bool serves(const struct ipv6hdr *six, void *end)
{
	const struct icmp6hdr *icmp = (const void *)(six + 1);

	/* Reports of groups, which go to a group, have the option of a router alert before them. */
	if (six->nexthdr == 0)
		return six->daddr.in6_u.u6_addr8[0] == 0xff;
	if (six->nexthdr != IPPROTO_ICMPV6 || (void *)(icmp + 1) > end)
		return false;
	return icmp->icmp6_type >= 130 && icmp->icmp6_type <= 137;
}

SEC("tcx/ingress")
int guard(struct __sk_buff *skb)
{
	void *end = (void *)(long)skb->data_end;
	struct headers h;
	struct prefix from = { .bits = 128 };
	__u32 *accept;

	if (!find((void *)(long)skb->data, end, &h))
		return TCX_NEXT;
	source(&h, &from.address);
	accept = bpf_map_lookup_elem(&sources, &from);
	if (accept && *accept)
		return TCX_NEXT;
	if (!h.is_four && serves(h.six, end))
		return TCX_NEXT;
	return TCX_DROP;
}
