package synth_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/music/synth"
)

// BenchmarkPieces renders pieces of many channels. Its factor counts seconds of the
// processor, which do not depend on what else the machine does.
func BenchmarkPieces(b *testing.B) {
	for _, path := range []string{"/usr/share/sounds/sf2/TimGM6mb.sf2", "/usr/share/sounds/sf2/FluidR3_GM.sf2"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		font := load(b, raw)
		for _, name := range []string{"chords", "ensemble", "sustain pedal", "volume and pan"} {
			b.Run(filepath.Base(path)+"/"+name, func(b *testing.B) {
				music, seconds, start := pieces()[name], 0.0, used(b)
				for b.Loop() {
					r, err := font.Play(b.Context(), io.Discard, music, synth.Options{})
					if err != nil {
						b.Fatal(err)
					}
					seconds += r.Seconds
				}
				b.ReportMetric(seconds/(used(b)-start).Seconds(), "x-realtime")
			})
		}
	}
}

// used is the time of the processor that this process has used.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
