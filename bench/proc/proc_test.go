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
	var s, own Spent
	for s.CPU-own.CPU < 5*tick { // so much is the child's
		if s, err = Tree(parent.Process.Pid); err == nil {
			own, err = Of(parent.Process.Pid)
		}
		if err != nil || ctx.Err() != nil {
			t.Fatalf("the parent alone spent %+v, all of them %+v (%v, %v)", own, s, err, ctx.Err())
		}
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
