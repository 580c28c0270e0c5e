// Package proc reads the CPU time and memory of processes.
package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Spent is the CPU time of processes so far, and their memory now.
type Spent struct {
	CPU    time.Duration // user and system; the kernel counts in steps of 10 ms
	Memory int64         // bytes; shared pages count in parts
}

// tick is the kernel's unit in /proc/PID/stat, 100 a second on every Linux.
const tick = 10 * time.Millisecond

// Self is the CPU time of this process so far, user and system.
func Self() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // cannot fail with these arguments
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Of is what one process has spent, without its children.
func Of(pid int) (Spent, error) {
	s, err := readStat(pid)
	if err != nil {
		return Spent{}, err
	}
	return Spent{s.own, memory(pid)}, nil
}

// Tree is what a process and its children have spent, including children that have ended.
func Tree(pid int) (Spent, error) {
	root, err := readStat(pid)
	if err != nil {
		return Spent{}, err
	}
	sum := Spent{root.own + root.waited, memory(pid)}
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return sum, err
	}
	for _, path := range found {
		child, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			return sum, err
		}
		s, err := readStat(child)
		if err == nil && s.parent == pid {
			sum.CPU += s.own + s.waited
			sum.Memory += memory(child)
		}
	}
	return sum, nil
}

// Sub is the CPU time since before, and the memory now.
func (s Spent) Sub(before Spent) Spent { return Spent{s.CPU - before.CPU, s.Memory} }

// Postgres returns the process of the server at url, which must run on this machine.
func Postgres(ctx context.Context, url string) (pid int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	var backend int
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	s, err := readStat(backend)
	return s.parent, err
}

type stat struct {
	parent      int
	own, waited time.Duration // waited: of children that have ended
}

func readStat(pid int) (s stat, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The name is in parentheses and may contain any character.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return s, fmt.Errorf("/proc/%d/stat: %w", pid, fs.ErrInvalid)
	}
	var numbers [5]int64
	for i, at := range []int{1, 11, 12, 13, 14} {
		if numbers[i], err = strconv.ParseInt(fields[at], 10, 64); err != nil {
			return s, err
		}
	}
	return stat{int(numbers[0]), time.Duration(numbers[1]+numbers[2]) * tick, time.Duration(numbers[3]+numbers[4]) * tick}, nil
}

// memory is 0 for a process that has ended or may not be read.
func memory(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}
