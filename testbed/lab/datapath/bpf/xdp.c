// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* Redirection in the drivers' receive path, before a socket buffer is made. */
#include "packet.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* What is to become of packets to an address. */
struct way {
	__u32 device;
	__u8 to[ETH_ALEN];
	__u8 from[ETH_ALEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct address);
	__type(value, struct way);
} ways SEC(".maps");

/* The devices that packets are sent out of, by their numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} devices SEC(".maps");

/* At the node's end of each pod's veth, and at the underlay's port. */
SEC("xdp.frags")
int forward(struct xdp_md *x)
{
	struct headers h;
	struct address to;
	struct way *way;

	if (!find((void *)(long)x->data, (void *)(long)x->data_end, &h))
		return XDP_PASS;
	destination(&h, &to);
	way = bpf_map_lookup_elem(&ways, &to);
	if (!way || !travel(&h))
		return XDP_PASS;
	__builtin_memcpy(h.eth->h_dest, way->to, ETH_ALEN);
	__builtin_memcpy(h.eth->h_source, way->from, ETH_ALEN);
	return bpf_redirect_map(&devices, way->device, XDP_DROP);
}

/* At the other ends: a device takes what is redirected to it only if it has a program itself. */
SEC("xdp.frags")
int receive(struct xdp_md *x)
{
	(void)x;
	return XDP_PASS;
}
