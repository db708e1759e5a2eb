// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* Redirection of packets from device to device, past the node's IP stack, as Cilium does it with its host routing by eBPF. */
#include "packet.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A pod of this node. */
struct pod {
	__u32 node_end; /* the number of the node's end of its veth */
	__u8 mac[ETH_ALEN];
	__u8 gateway[ETH_ALEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct address);
	__type(value, struct pod);
} pods SEC(".maps");

/* Where the pods of other nodes are, the far ends of tunnels. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct prefix);
	__type(value, struct address);
} far SEC(".maps");

/* The tunnel's device, 0 without encapsulation, and the number of the network in it. */
const volatile __u32 tunnel;
const volatile __u32 tunnel_id;
/* The near end of tunnels. A policy of IPsec is looked up by both ends, before the kernel would have chosen one. */
const volatile struct address near;

/* deliver hands a packet to a pod of this node, in the namespace of the pod. */
static __always_inline int deliver(const struct headers *h, const struct pod *to)
{
	if (!travel(h))
		return TCX_PASS;
	__builtin_memcpy(h->eth->h_dest, to->mac, ETH_ALEN);
	__builtin_memcpy(h->eth->h_source, to->gateway, ETH_ALEN);
	return bpf_redirect_peer(to->node_end, 0);
}

/* encapsulate sends a packet to another node as metadata say. */
static __always_inline int encapsulate(struct __sk_buff *skb, const struct headers *h, const struct address *to)
{
	struct bpf_tunnel_key key = { .tunnel_id = tunnel_id, .tunnel_ttl = 64 };
	struct prefix all = { .bits = 128, .address = *to };
	struct address *node = bpf_map_lookup_elem(&far, &all);
	/* As a tunnel with a fixed far end does it, UDP has a checksum over IPv6, and none over IPv4. */
	__u64 flags = BPF_F_ZERO_CSUM_TX;
	struct address own = { .word = { near.word[0], near.word[1], near.word[2], near.word[3] } };

	if (!node || !travel(h))
		return TCX_PASS;
	if (!h->is_four) {
		flags = BPF_F_TUNINFO_IPV6;
		to_words(key.remote_ipv6, node);
		to_words(key.local_ipv6, &own);
	} else {
		key.remote_ipv4 = bpf_ntohl(node->word[3]);
		key.local_ipv4 = bpf_ntohl(own.word[3]);
	}
	if (bpf_skb_set_tunnel_key(skb, &key, sizeof(key), flags))
		return TCX_DROP;
	return bpf_redirect(tunnel, 0);
}

/* route sends a packet where the node's routes lead. */
static __always_inline int route(struct __sk_buff *skb, const struct headers *h)
{
	struct bpf_redir_neigh hop = {};
	struct bpf_fib_lookup way = { .ifindex = skb->ingress_ifindex };
	long found;

	if (h->is_four) {
		way.family = AF_INET;
		way.tos = h->four->tos;
		way.l4_protocol = h->four->protocol;
		way.ipv4_src = h->four->saddr;
		way.ipv4_dst = h->four->daddr;
	} else {
		struct address from, to;

		way.family = AF_INET6;
		way.l4_protocol = h->six->nexthdr;
		source(h, &from);
		destination(h, &to);
		to_words(way.ipv6_src, &from);
		to_words(way.ipv6_dst, &to);
	}
	found = bpf_fib_lookup(skb, &way, sizeof(way), 0);
	if (found != BPF_FIB_LKUP_RET_SUCCESS && found != BPF_FIB_LKUP_RET_NO_NEIGH)
		return TCX_PASS;
	if (!travel(h))
		return TCX_PASS;
	hop.nh_family = way.family;
	if (way.family == AF_INET)
		hop.ipv4_nh = way.ipv4_dst;
	else
		__builtin_memcpy(hop.ipv6_nh, way.ipv6_dst, sizeof(hop.ipv6_nh));
	return bpf_redirect_neigh(way.ifindex, &hop, sizeof(hop), 0);
}

/* At the node's end of each pod's veth. */
SEC("tcx/ingress")
int from_pod(struct __sk_buff *skb)
{
	struct headers h;
	struct address to;
	struct pod *near;

	if (!find((void *)(long)skb->data, (void *)(long)skb->data_end, &h))
		return TCX_PASS;
	destination(&h, &to);
	near = bpf_map_lookup_elem(&pods, &to);
	if (near)
		return deliver(&h, near);
	if (tunnel)
		return encapsulate(skb, &h, &to);
	return route(skb, &h);
}

/* At the underlay's port, or at the tunnel. */
SEC("tcx/ingress")
int from_outside(struct __sk_buff *skb)
{
	struct headers h;
	struct address to;
	struct pod *near;

	if (!find((void *)(long)skb->data, (void *)(long)skb->data_end, &h))
		return TCX_PASS;
	destination(&h, &to);
	near = bpf_map_lookup_elem(&pods, &to);
	if (!near)
		return TCX_PASS;
	/* What comes out of a tunnel was addressed to the gateway of its sender, and counts as somebody else's. */
	if (tunnel)
		bpf_skb_change_type(skb, PACKET_HOST);
	return deliver(&h, near);
}
