// SPDX-License-Identifier: GPL-2.0
// Counts, for each tick of the profiler, where the processor was: the kernel's stack, the program's stack, and in whose
// network namespace.
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

// As much of the kernel's own structures as is read here; CO-RE finds the fields.
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct nsproxy {
	struct net *net_ns;
} __attribute__((preserve_access_index));

struct task_struct {
	unsigned int flags;
	struct nsproxy *nsproxy;
} __attribute__((preserve_access_index));

#define STACKS 32768
#define DEPTH 127
#define NAME 16
#define PF_KTHREAD 0x00200000 // include/linux/sched.h

struct place {
	__u32 process;
	__u32 space; // inode of the network namespace, 0 for a task on its way out
	__s32 kernel;
	__s32 user;
	__u32 own; // 1 for a thread of the kernel's own
	char name[NAME];
};

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, DEPTH * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS);
	__type(key, struct place);
	__type(value, __u64);
} ticks SEC(".maps");

// Ticks for which there was no room.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

static void lose(void)
{
	__u32 first = 0;
	__u64 *n = bpf_map_lookup_elem(&lost, &first);

	if (n)
		(*n)++;
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	struct place at = {};
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 one = 1, *n;

	at.process = bpf_get_current_pid_tgid() >> 32;
	at.space = BPF_CORE_READ(task, nsproxy, net_ns, ns.inum);
	at.own = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	bpf_get_current_comm(at.name, sizeof(at.name));
	at.kernel = bpf_get_stackid(ctx, &stacks, 0);
	at.user = bpf_get_stackid(ctx, &stacks, BPF_F_USER_STACK);
	n = bpf_map_lookup_elem(&ticks, &at);
	if (n)
		__sync_fetch_and_add(n, 1);
	else if (bpf_map_update_elem(&ticks, &at, &one, BPF_NOEXIST))
		lose();
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
