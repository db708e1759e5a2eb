#include "textflag.h"

#define FD     0
#define OUT    8
#define IN     16
#define SIZE   24
#define START  32
#define END    40
#define SENT   48
#define GOT    56
#define SERVED 64

#define SYS_SENDTO   44
#define SYS_RECVFROM 45
#define MSG_NOSIGNAL 0x4000

// A system call keeps all registers but AX, CX and R11.

// func RoundTrip(e *Exchange)
TEXT ·RoundTrip(SB), NOSPLIT, $0-8
	MOVQ e+0(FP), BX
	MOVQ FD(BX), DI
	MOVQ OUT(BX), SI
	XORL R8, R8
	XORL R9, R9
	MOVL $MSG_NOSIGNAL, R10
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, START(BX)
	MOVQ SIZE(BX), DX
	MOVL $SYS_SENDTO, AX
	SYSCALL
	MOVQ AX, SENT(BX)
	CMPQ AX, DX
	JNE  done
	MOVQ IN(BX), SI
	XORL R10, R10
	MOVL $SYS_RECVFROM, AX
	SYSCALL
	MOVQ AX, GOT(BX)
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, END(BX)
done:
	RET

// func Answer(e *Exchange)
TEXT ·Answer(SB), NOSPLIT, $0-8
	MOVQ e+0(FP), BX
	MOVQ FD(BX), DI
	MOVQ SIZE(BX), DX
	XORL R8, R8
	XORL R9, R9
next:
	MOVQ IN(BX), SI
	XORL R10, R10
	MOVL $SYS_RECVFROM, AX
	SYSCALL
	MOVQ AX, GOT(BX)
	CMPQ AX, DX
	JNE  done
	MOVQ OUT(BX), SI
	MOVL $MSG_NOSIGNAL, R10
	MOVL $SYS_SENDTO, AX
	SYSCALL
	MOVQ AX, SENT(BX)
	CMPQ AX, DX
	JNE  done
	INCQ SERVED(BX)
	JMP  next
done:
	RET
