package terminaltest_test

import (
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/ui/terminal/terminaltest"
)

func TestCharactersInParts(t *testing.T) {
	t.Parallel()
	screen := terminaltest.New(20, 2)
	for _, b := range []byte("a─é│😀\xffz") {
		if n, err := screen.Write([]byte{b}); n != 1 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
	}
	if got := strings.TrimSpace(screen.Text()); got != "a─é│😀z" {
		t.Errorf("got %q", got)
	}
}

func TestAwait(t *testing.T) {
	t.Parallel()
	screen := terminaltest.New(20, 2)
	go func() {
		for _, word := range []string{"one ", "two ", "three"} {
			_, _ = screen.Write([]byte(word))
		}
	}()
	screen.Await(t, "three", func(text string) bool { return text == "one two three\n\n" })
}
