// SPDX-License-Identifier: GPL-2.0
// Notes when packets of watched connections pass devices and sockets. Only BTF tracepoints are used: they are in every
// kernel with BTF, and cost least.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
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

struct sk_buff {
	struct net_device *dev;
	__u16 network_header;
	unsigned char *head, *data;
} __attribute__((preserve_access_index));

struct sock_common {
	__be16 skc_dport;
	__u16 skc_num;
	possible_net_t skc_net;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
} __attribute__((preserve_access_index));

struct task_struct {
	int pid, tgid;
} __attribute__((preserve_access_index));

// The servers' ports: packets to and from them are watched.
const volatile __u16 first_port = 0;
const volatile __u16 last_port = 0;
// The network namespace that is left out: the switch between the nodes.
const volatile __u32 skipped = 0;
// The program whose threads are the ends of the connections.
const volatile __s32 program = 0;
// How many events of a processor there is room for.
const volatile __u32 room = 0;

enum kind {
	SENT = 1,  // a device is given the packet to transmit
	RECEIVED,  // a device has handed the packet to the stack
	ARRIVED,   // TCP has the segment
	READY,     // the socket tells who waits for it
	WRITTEN,   // TCP begins to take what a program writes
	REPEATED,  // TCP sends a segment again
	PREEMPTED, // another task has the processor before or after a thread of the program
};

struct event {
	__u64 at; // CLOCK_MONOTONIC
	__u32 space, device;
	__u32 sequence; // of TCP
	__u32 length;   // of the payload
	__u16 source, destination;
	__u8 kind;
	__u8 wraps; // how many packets the packet is wrapped in
	__u16 processor;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); // grown before it is loaded
	__type(key, __u32);
	__type(value, struct event);
} events SEC(".maps");

// How many events each processor has had, also those without room.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __always_inline struct event *next(void)
{
	__u32 zero = 0, at;
	__u64 *count = bpf_map_lookup_elem(&counts, &zero);

	if (!count)
		return 0;
	// Nothing interrupts a tracepoint's program on its processor but another such program, which may take the place: the
	// number is taken at once.
	at = __sync_fetch_and_add(count, 1);
	if (at >= room)
		return 0;
	at += bpf_get_smp_processor_id() * room;
	return bpf_map_lookup_elem(&events, &at);
}

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;
#define AT(type, p) ((struct type *)bpf_rdonly_cast((p), bpf_core_type_id_kernel(struct type)))

struct found {
	__u32 sequence, length;
	__u16 source, destination;
	__u8 wraps;
};

static __always_inline int wanted(__u16 source, __u16 destination)
{
	return (source >= first_port && source <= last_port) || (destination >= first_port && destination <= last_port);
}

#define IPPROTO_IPV4_IN 4
#define IPPROTO_IPV6_IN 41
#define IPPROTO_GRE_IN 47

// Destination ports of tunnels in UDP. 8472 is the port that Linux took before VXLAN had a number.
#define VXLAN 4789
#define VXLAN_OLD 8472
#define GENEVE 6081

#define TEB 0x6558 // an Ethernet frame inside (transparent Ethernet bridging)

// within finds the packet inside a tunnel's, 0 if it is none.
static __always_inline unsigned char *within_udp(unsigned char *p, __u16 port)
{
	switch (port) {
	case VXLAN:
	case VXLAN_OLD:
		return p + sizeof(struct udphdr) + 8 + ETH_HLEN;
	case GENEVE: {
		// RFC 8926, section 3.4: the length of the options in words, and what is inside.
		struct udphdr *words = AT(udphdr, p + sizeof(struct udphdr));
		__u16 head = bpf_ntohs(words->source);
		unsigned char *inner = p + sizeof(struct udphdr) + 8 + ((head >> 8) & 0x3f) * 4;

		return bpf_ntohs(words->dest) == TEB ? inner + ETH_HLEN : inner;
	}
	}
	return 0;
}

// within_gre: RFC 2784 and RFC 2890: flags tell which optional words there are.
static __always_inline unsigned char *within_gre(unsigned char *p)
{
	struct udphdr *words = AT(udphdr, p);
	__u16 flags = bpf_ntohs(words->source);
	unsigned char *inner = p + 4;

	if (flags & 0x8000)
		inner += 4;
	if (flags & 0x2000)
		inner += 4;
	if (flags & 0x1000)
		inner += 4;
	return bpf_ntohs(words->dest) == TEB ? inner + ETH_HLEN : inner;
}

// look reads the packet whose IP header is at p, through what it is wrapped in.
static __always_inline int look(unsigned char *p, struct found *f)
{
#pragma unroll
	for (int depth = 0; depth < 3; depth++) {
		struct iphdr *ip = AT(iphdr, p);
		__u8 first = *(__u8 *)ip, protocol;
		__u32 rest;

		if (first >> 4 == 4) {
			__u32 header = (first & 15) * 4;

			if (ip->frag_off & bpf_htons(0x1fff))
				return 0;
			protocol = ip->protocol;
			rest = bpf_ntohs(ip->tot_len) - header;
			p += header;
		} else if (first >> 4 == 6) {
			struct ipv6hdr *ip6 = AT(ipv6hdr, p);

			protocol = ip6->nexthdr;
			rest = bpf_ntohs(ip6->payload_len);
			p += sizeof(*ip6);
		} else {
			return 0;
		}
		f->wraps = depth;
		switch (protocol) {
		case IPPROTO_TCP: {
			struct tcphdr *tcp = AT(tcphdr, p);
			struct iphdr *flags;

			f->source = bpf_ntohs(tcp->source);
			f->destination = bpf_ntohs(tcp->dest);
			if (!wanted(f->source, f->destination))
				return 0;
			f->sequence = bpf_ntohl(tcp->seq);
			flags = AT(iphdr, p + 12); // its first byte holds the length of the header
			f->length = rest - (*(__u8 *)flags >> 4) * 4;
			return f->length != 0; // acknowledgements carry no request
		}
		case IPPROTO_UDP: {
			struct udphdr *udp = AT(udphdr, p);
			unsigned char *inner;

			f->source = bpf_ntohs(udp->source);
			f->destination = bpf_ntohs(udp->dest);
			if (wanted(f->source, f->destination)) {
				f->sequence = 0;
				f->length = rest - sizeof(*udp);
				return 1;
			}
			inner = within_udp(p, f->destination);
			if (!inner)
				return 0;
			p = inner;
			break;
		}
		case IPPROTO_GRE_IN:
			p = within_gre(p);
			break;
		case IPPROTO_IPV4_IN:
		case IPPROTO_IPV6_IN:
			break;
		default:
			return 0;
		}
	}
	return 0;
}

static __always_inline void note(enum kind kind, struct found *f, __u32 space, __u32 device)
{
	__u64 now = bpf_ktime_get_ns();
	struct event *e = next();

	if (!e)
		return;
	e->at = now;
	e->space = space;
	e->device = device;
	e->sequence = f->sequence;
	e->length = f->length;
	e->source = f->source;
	e->destination = f->destination;
	e->kind = kind;
	e->wraps = f->wraps;
	e->processor = bpf_get_smp_processor_id();
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(sent, struct sk_buff *skb, struct net_device *dev)
{
	__u32 space = dev->nd_net.net->ns.inum;
	struct found f;

	if (space != skipped && look(skb->head + skb->network_header, &f))
		note(SENT, &f, space, dev->ifindex);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(received, struct sk_buff *skb)
{
	struct net_device *dev = skb->dev;
	__u32 space = dev->nd_net.net->ns.inum;
	struct found f;

	// The link's header is off, and the network's not noted yet.
	if (space != skipped && look(skb->data, &f))
		note(RECEIVED, &f, space, dev->ifindex);
	return 0;
}

// ours fills in what a socket says of its connection, from the side of the packet that comes in or goes out.
static __always_inline int ours(struct sock *sk, struct found *f, int in)
{
	__u16 own = sk->__sk_common.skc_num, other = bpf_ntohs(sk->__sk_common.skc_dport);

	if (!wanted(own, other))
		return 0;
	f->source = in ? other : own;
	f->destination = in ? own : other;
	f->sequence = f->length = f->wraps = 0;
	return 1;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(arrived, struct sock *sk, struct sk_buff *skb)
{
	struct found f;

	if (ours(sk, &f, 1))
		note(ARRIVED, &f, sk->__sk_common.skc_net.net->ns.inum, 0);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(ready, struct sock *sk)
{
	struct found f;

	if (ours(sk, &f, 1))
		note(READY, &f, sk->__sk_common.skc_net.net->ns.inum, 0);
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(written, struct sock *sk)
{
	struct found f;

	if (ours(sk, &f, 0))
		note(WRITTEN, &f, sk->__sk_common.skc_net.net->ns.inum, 0);
	return 0;
}


SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(repeated, struct sock *sk, struct sk_buff *skb)
{
	struct found f;

	if (ours(sk, &f, 0))
		note(REPEATED, &f, sk->__sk_common.skc_net.net->ns.inum, 0);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(preempted, _Bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct found f = {};

	int before = prev->tgid == program, after = next->tgid == program;

	// The idle task gives way at once.
	if (before && !after && next->pid)
		note(PREEMPTED, &f, 0, next->pid);
	else if (!before && after && prev->pid)
		note(PREEMPTED, &f, 0, prev->pid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
