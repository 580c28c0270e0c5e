package synth

import (
	"io"
	"math"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
)

// writer writes a stereo WAV file of 16 bits.
type writer struct {
	w     io.Writer
	gain  float32
	peak  float32
	bytes []byte
}

// begin writes the header of a file with that many frames.
func (w *writer) begin(rate, frames int) error {
	header, err := audio.Header(audio.Clip{Channels: 2, Rate: rate}, 16, frames)
	if err != nil {
		return err
	}
	return w.put(header)
}

// write writes a block.
func (w *writer) write(left, right []float32) error {
	w.bytes = w.bytes[:0]
	for i := range left {
		w.sample(left[i] * w.gain)
		w.sample(right[i] * w.gain)
	}
	return w.put(w.bytes)
}

func (w *writer) sample(s float32) {
	w.peak = max(w.peak, s, -s)
	v := int16(max(-1<<15, min(1<<15-1, math.RoundToEven(float64(s)*(1<<15)))))
	w.bytes = append(w.bytes, byte(v), byte(v>>8)) //nolint:gosec // the two bytes of it
}

func (w *writer) put(b []byte) error {
	if _, err := w.w.Write(b); err != nil {
		return fault.Wrap(fault.Internal, err, "write sound")
	}
	return nil
}
