// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * TCP sockets of pods on one node are joined: what one sends is put into the other's queue, past all devices.
 *
 * Bytes must not overtake each other. A socket begins with its first message: if its peer is known by then, all of its bytes
 * go to the peer's queue, else all go by TCP. When joining ends, each socket goes over to TCP for good, and the peer reads its
 * queue empty before it looks at what came by TCP.
 */
#include "packet.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The two ends of a connection, as one of them sees it; ports in host order. */
struct ends {
	struct address local, remote;
	__u32 local_port, remote_port;
};

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, struct ends);
	__type(value, __u64);
} sockets SEC(".maps");

/* The node of each pod. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct address);
	__type(value, __u32);
} nodes SEC(".maps");

enum way { UNDECIDED, JOINED, BY_TCP };

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32); /* enum way */
} ways SEC(".maps");

/* Set when joining has ended. */
volatile __u32 over;

/*
 * The verifier wants each field of a context read at its own place. The compiler would share one read among branches and
 * compute where it is; branches that end differently keep it from that.
 */
#define ends_of_four(e, context)                                                                                               \
	do {                                                                                                                   \
		(e)->local = mapped((context)->local_ip4);                                                                     \
		(e)->remote = mapped((context)->remote_ip4);                                                                   \
		asm volatile("/* four */" ::: "memory");                                                                       \
	} while (0)

#define ends_of_six(e, context)                                                                                                \
	do {                                                                                                                   \
		(e)->local.word[0] = (context)->local_ip6[0];                                                                  \
		(e)->local.word[1] = (context)->local_ip6[1];                                                                  \
		(e)->local.word[2] = (context)->local_ip6[2];                                                                  \
		(e)->local.word[3] = (context)->local_ip6[3];                                                                  \
		(e)->remote.word[0] = (context)->remote_ip6[0];                                                                \
		(e)->remote.word[1] = (context)->remote_ip6[1];                                                                \
		(e)->remote.word[2] = (context)->remote_ip6[2];                                                                \
		(e)->remote.word[3] = (context)->remote_ip6[3];                                                                \
		asm volatile("/* six */" ::: "memory");                                                                        \
	} while (0)

/* established notes a connection that has come about, if it is one between two pods of a node. */
SEC("sockops")
int established(struct bpf_sock_ops *s)
{
	struct ends e = {};
	__u32 *here, *there;

	if (s->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && s->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (s->family == AF_INET)
		ends_of_four(&e, s);
	else if (s->family == AF_INET6)
		ends_of_six(&e, s);
	else
		return 1;
	here = bpf_map_lookup_elem(&nodes, &e.local);
	there = bpf_map_lookup_elem(&nodes, &e.remote);
	if (!here || !there || *here != *there)
		return 1;
	e.local_port = s->local_port;
	e.remote_port = bpf_ntohl(s->remote_port);
	bpf_sock_hash_update(s, &sockets, &e, BPF_ANY);
	return 1;
}

/* sent leads a message to the peer of the socket that sends it. */
SEC("sk_msg")
int sent(struct sk_msg_md *m)
{
	struct ends own = {}, peer;
	__u32 *way;

	if (!m->sk)
		return SK_PASS;
	way = bpf_sk_storage_get(&ways, m->sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!way || *way == BY_TCP)
		return SK_PASS;
	if (over) {
		*way = BY_TCP;
		return SK_PASS;
	}
	if (m->family == AF_INET)
		ends_of_four(&own, m);
	else
		ends_of_six(&own, m);
	peer.local = own.remote;
	peer.remote = own.local;
	peer.local_port = bpf_ntohl(m->remote_port);
	peer.remote_port = m->local_port;
	if (bpf_msg_redirect_hash(m, &sockets, &peer, BPF_F_INGRESS) == SK_PASS)
		*way = JOINED;
	else
		*way = BY_TCP; /* the peer is not joined, or has closed: then TCP says so */
	return SK_PASS;
}
