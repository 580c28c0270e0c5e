//go:build linux && !amd64 && !arm64

package confine

// auditArch is zero: the numbers of the system calls are not known for this processor,
// and a policy with Seccomp is refused.
const auditArch = 0

func refusedHere() []uint32 { return nil }

func forkCalls() []uint32 { return nil }

func olderCalls() map[uint32]access { return nil }
