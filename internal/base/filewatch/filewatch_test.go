package filewatch_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/luanette/luanette/internal/base/filewatch"
)

// A file that is created, and one that is replaced, are reported; others are not.
func TestChangesAreReported(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "watched.toml")
	w := filewatch.New(t.Context(), slog.New(slog.DiscardHandler))
	if w == nil {
		t.Fatal("no watcher")
	}
	w.AddFiles(t.Context(), map[string]bool{file: true})
	if !w.HasFile(file) || w.HasFile(filepath.Join(folder, "other")) {
		t.Error("the list of files is wrong")
	}
	ctx, stop := context.WithCancel(t.Context())
	reported := make(chan string)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx, w.HasFile, func(context.Context) {
			text, _ := os.ReadFile(file)
			select {
			case reported <- string(text):
			case <-ctx.Done():
			}
		})
	}()
	for _, text := range []string{"created", "replaced"} {
		temporary := filepath.Join(folder, "temporary")
		if err := os.WriteFile(temporary, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(temporary, file); err != nil {
			t.Fatal(err)
		}
		if got := <-reported; got != text {
			t.Errorf("reported %q, want %q", got, text)
		}
	}
	stop()
	<-ended
}
