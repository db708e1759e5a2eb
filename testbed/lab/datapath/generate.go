package datapath

// The programs are compiled by clang 14 against the headers of libbpf-dev and linux-libc-dev, wherever the distribution keeps
// the headers of its architecture. One object serves all little-endian processors.

//go:generate go tool -modfile=../../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -no-global-types -type pod -type address -type prefix redirect bpf/redirect.c -- -O2 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
//go:generate go tool -modfile=../../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -no-global-types -type prefix guard bpf/guard.c -- -O2 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
//go:generate go tool -modfile=../../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -no-global-types -type address balance bpf/balance.c -- -O2 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
//go:generate go tool -modfile=../../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -no-global-types -type address sockets bpf/sockets.c -- -O2 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
//go:generate go tool -modfile=../../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 -no-global-types -type address -type way xdp bpf/xdp.c -- -O2 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
