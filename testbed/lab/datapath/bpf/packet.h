/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the datapaths share: addresses, and finding them in a packet. Addresses of IPv4 are held as IPv4-mapped ones. */
#ifndef NETDELTA_PACKET_H
#define NETDELTA_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define AF_INET 2
#define AF_INET6 10

/* What a program at a device says of a packet (enum tcx_action_base): let the next program see it, or the stack; drop it. */
#define TCX_NEXT -1
#define TCX_PASS 0
#define TCX_DROP 2

struct address {
	__u32 word[4];
};

/* A range of addresses, as the tries want it. */
struct prefix {
	__u32 bits;
	struct address address;
};

static __always_inline struct address mapped(__u32 v4)
{
	struct address a = { { 0, 0, bpf_htonl(0xffff), v4 } };

	return a;
}

static __always_inline void from_in6(struct address *a, const struct in6_addr *six)
{
	a->word[0] = six->in6_u.u6_addr32[0];
	a->word[1] = six->in6_u.u6_addr32[1];
	a->word[2] = six->in6_u.u6_addr32[2];
	a->word[3] = six->in6_u.u6_addr32[3];
}

static __always_inline void to_words(__u32 *words, const struct address *a)
{
	words[0] = a->word[0];
	words[1] = a->word[1];
	words[2] = a->word[2];
	words[3] = a->word[3];
}

static __always_inline bool same(const struct address *a, const struct address *b)
{
	return a->word[0] == b->word[0] && a->word[1] == b->word[1] && a->word[2] == b->word[2] && a->word[3] == b->word[3];
}

/* A frame's Ethernet header, and the IP header behind it. */
struct headers {
	struct ethhdr *eth;
	union {
		struct iphdr *four;
		struct ipv6hdr *six;
	};
	bool is_four;
};

/* find looks for IP in a frame; it is false where there is none. */
static __always_inline bool find(void *data, void *end, struct headers *h)
{
	h->eth = data;
	if ((void *)(h->eth + 1) > end)
		return false;
	if (h->eth->h_proto == bpf_htons(ETH_P_IP)) {
		h->is_four = true;
		h->four = (void *)(h->eth + 1);
		return (void *)(h->four + 1) <= end;
	}
	if (h->eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		h->is_four = false;
		h->six = (void *)(h->eth + 1);
		return (void *)(h->six + 1) <= end;
	}
	return false;
}

static __always_inline void destination(const struct headers *h, struct address *a)
{
	if (h->is_four)
		*a = mapped(h->four->daddr);
	else
		from_in6(a, &h->six->daddr);
}

static __always_inline void source(const struct headers *h, struct address *a)
{
	if (h->is_four)
		*a = mapped(h->four->saddr);
	else
		from_in6(a, &h->six->saddr);
}

/* travel counts a hop, as each router does; it is false for a packet that has none left, which the stack shall answer. */
static __always_inline bool travel(const struct headers *h)
{
	if (h->is_four) {
		__u32 sum;

		if (h->four->ttl <= 1)
			return false;
		h->four->ttl--;
		/* RFC 1141: one less in the upper byte of a word is one more in the checksum's. */
		sum = h->four->check + bpf_htons(0x0100);
		h->four->check = sum + (sum >= 0xffff);
		return true;
	}
	if (h->six->hop_limit <= 1)
		return false;
	h->six->hop_limit--;
	return true;
}

#endif
