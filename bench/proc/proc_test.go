package proc

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestOfOurselves(t *testing.T) {
	t.Parallel()
	before, err := Of(os.Getpid())
	if err != nil || before.Memory < 1<<20 {
		t.Fatalf("Of = %+v, %v", before, err)
	}
	for after := before; after.Sub(before).CPU < 3*tick; {
		if after, err = Of(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
}

// What children have spent counts, before and after their end.
func TestTreeCountsChildren(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	parent := exec.CommandContext(ctx, "sh", "-c", "(while :; do :; done) & read gone; kill $!; wait; exec sleep 60")
	in, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = parent.Wait()
	}()
	var s Spent
	for ; s.CPU < 5*tick; s, err = Tree(parent.Process.Pid) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if own, err := Of(parent.Process.Pid); err != nil || own.CPU > s.CPU-2*tick {
		t.Errorf("the parent alone spent %+v (%v), all of them %+v", own, err, s)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		found, err := readStat(parent.Process.Pid)
		if err != nil || ctx.Err() != nil {
			t.Fatal(err, ctx.Err())
		}
		if found.waited >= 5*tick {
			break
		}
	}
	if after, err := Tree(parent.Process.Pid); err != nil || after.CPU < s.CPU {
		t.Errorf("Tree = %+v, %v, want at least %+v", after, err, s)
	}
}
