// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* Virtual addresses are resolved at the client's device: what leaves goes to the backend, what comes back is from the virtual address. */
#include "packet.h"
#include <linux/tcp.h>
#include <linux/udp.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The backend of each virtual address. Its size is set when it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct address);
	__type(value, struct address);
} services SEC(".maps");

/* A connection, as packets that come back have it. */
struct connection {
	struct address backend;
	__be16 backend_port, own_port;
	__u32 protocol;
};

/* The virtual address that a connection was opened to. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct connection);
	__type(value, struct address);
} connections SEC(".maps");

/* A packet that was cut up, as its fragments name it. */
struct fragmented {
	struct address backend;
	__u32 id, protocol;
};

/* The virtual address of packets whose first fragment came back: the others don't have the ports. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct fragmented);
	__type(value, struct address);
} fragments SEC(".maps");

/* What the programs need to know of a packet. */
struct packet {
	struct address source, destination;
	__u32 protocol;
	__u32 at; /* where the transport header begins */
	__be16 source_port, destination_port;
	bool four;
	bool first; /* has the ports: it is whole, or the first fragment */
	bool cut;   /* is a fragment */
	__u32 id;
};

/* IPv6's fragment header. */
struct piece {
	__u8 next;
	__u8 reserved;
	__be16 offset; /* in the upper 13 bits, with the flag for more in the lowest */
	__be32 id;
};

static __always_inline bool look(struct __sk_buff *skb, struct packet *p)
{
	struct headers h;
	__be16 ports[2];

	if (!find((void *)(long)skb->data, (void *)(long)skb->data_end, &h))
		return false;
	source(&h, &p->source);
	destination(&h, &p->destination);
	p->four = h.is_four;
	if (h.is_four) {
		__u16 offset = bpf_ntohs(h.four->frag_off);

		p->protocol = h.four->protocol;
		p->at = sizeof(struct ethhdr) + h.four->ihl * 4;
		p->cut = offset & 0x3fff;
		p->first = !(offset & 0x1fff);
		p->id = h.four->id;
	} else {
		p->protocol = h.six->nexthdr;
		p->at = sizeof(struct ethhdr) + sizeof(struct ipv6hdr);
		p->first = true;
		if (p->protocol == IPPROTO_FRAGMENT) {
			struct piece piece;

			if (bpf_skb_load_bytes(skb, p->at, &piece, sizeof(piece)))
				return false;
			p->protocol = piece.next;
			p->at += sizeof(piece);
			p->cut = true;
			p->first = !(bpf_ntohs(piece.offset) & 0xfff8);
			p->id = piece.id;
		}
	}
	if (p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP)
		return false;
	if (!p->first)
		return true;
	if (bpf_skb_load_bytes(skb, p->at, ports, sizeof(ports)))
		return false;
	p->source_port = ports[0];
	p->destination_port = ports[1];
	return true;
}

/* rewrite puts another address into a packet and mends its checksums. */
static __always_inline int rewrite(struct __sk_buff *skb, const struct packet *p, const struct address *old,
				   const struct address *now, bool to)
{
	__u32 size = p->four ? 4 : 16;
	__u32 at = sizeof(struct ethhdr);
	/* IPv4 addresses are the last of the words. */
	const __u32 *before = p->four ? &old->word[3] : &old->word[0];
	const __u32 *after = p->four ? &now->word[3] : &now->word[0];
	__s64 difference;

	if (p->four) {
		at += to ? offsetof(struct iphdr, daddr) : offsetof(struct iphdr, saddr);
		difference = bpf_csum_diff((__be32 *)before, 4, (__be32 *)after, 4, 0);
	} else {
		at += to ? offsetof(struct ipv6hdr, daddr) : offsetof(struct ipv6hdr, saddr);
		difference = bpf_csum_diff((__be32 *)before, 16, (__be32 *)after, 16, 0);
	}
	if (difference < 0)
		return TCX_DROP;
	if (p->first) {
		bool tcp = p->protocol == IPPROTO_TCP;
		__u32 sum = p->at + (tcp ? offsetof(struct tcphdr, check) : offsetof(struct udphdr, check));
		__u64 flags = BPF_F_PSEUDO_HDR | (tcp ? 0 : BPF_F_MARK_MANGLED_0);

		if (bpf_l4_csum_replace(skb, sum, 0, difference, flags))
			return TCX_DROP;
	}
	if (p->four && bpf_l3_csum_replace(skb, sizeof(struct ethhdr) + offsetof(struct iphdr, check), 0, difference, 0))
		return TCX_DROP;
	if (size == 4) {
		if (bpf_skb_store_bytes(skb, at, after, 4, 0))
			return TCX_DROP;
	} else if (bpf_skb_store_bytes(skb, at, after, 16, 0)) {
		return TCX_DROP;
	}
	return TCX_NEXT;
}

SEC("tcx/egress")
int leave(struct __sk_buff *skb)
{
	struct packet p = {};
	struct address *backend;

	if (!look(skb, &p))
		return TCX_NEXT;
	backend = bpf_map_lookup_elem(&services, &p.destination);
	if (!backend)
		return TCX_NEXT;
	if (p.first) {
		struct connection c = {
			.backend = *backend, .backend_port = p.destination_port, .own_port = p.source_port, .protocol = p.protocol,
		};
		struct address *known = bpf_map_lookup_elem(&connections, &c);

		if (!known || !same(known, &p.destination))
			bpf_map_update_elem(&connections, &c, &p.destination, BPF_ANY);
	}
	return rewrite(skb, &p, &p.destination, backend, true);
}

SEC("tcx/ingress")
int enter(struct __sk_buff *skb)
{
	struct packet p = {};
	struct fragmented f = {};
	struct address *virtual;

	if (!look(skb, &p))
		return TCX_NEXT;
	if (p.cut) {
		f.backend = p.source;
		f.id = p.id;
		f.protocol = p.protocol;
	}
	if (p.first) {
		struct connection c = {
			.backend = p.source, .backend_port = p.source_port, .own_port = p.destination_port, .protocol = p.protocol,
		};

		virtual = bpf_map_lookup_elem(&connections, &c);
		if (virtual && p.cut)
			bpf_map_update_elem(&fragments, &f, virtual, BPF_ANY);
	} else {
		virtual = bpf_map_lookup_elem(&fragments, &f);
	}
	if (!virtual)
		return TCX_NEXT;
	return rewrite(skb, &p, &p.source, virtual, false);
}
