package audio

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// MaxSize is the largest WAV file Decode takes, in bytes: about six minutes of
// CD audio.
const MaxSize = 64 << 20

// Format is the sample format of a WAV file.
type Format struct {
	Bits  int  // of one sample
	Float bool // floating point instead of integers
}

// Format tags.
const (
	pcm        = 1
	float      = 3
	extensible = 0xfffe
)

// Decode reads a WAV file with integers of 8, 16, 24 or 32 bits or floating point of
// 32 or 64. A truncated file is read as far as it goes.
func Decode(data []byte) (Clip, Format, error) {
	if len(data) > MaxSize {
		return Clip{}, Format{}, fault.New(fault.Limit, "the WAV file has %d bytes", len(data)).WithHint("at most %d are read", MaxSize)
	}
	if len(data) < 12 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WAVE" {
		return Clip{}, Format{}, broken("it does not begin with RIFF and WAVE")
	}
	var c Clip
	var f Format
	for rest := data[12:]; len(rest) >= 8; {
		name, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:8]))
		body := rest[8:]
		chunk := body[:min(size, int64(len(body)))]
		switch name {
		case "fmt ":
			var err error
			if c, f, err = readFormat(chunk); err != nil {
				return Clip{}, Format{}, err
			}
		case "data":
			if c.Channels == 0 {
				return Clip{}, Format{}, broken("its samples come before their format")
			}
			c.Samples = f.samples(chunk, c.Channels)
			return c, f, nil
		}
		rest = body[min(size+size%2, int64(len(body))):] // chunks begin at even places
	}
	return Clip{}, Format{}, broken("it has no samples")
}

// widths are the possible bits of a sample, by format.
var widths = map[uint16][]int{pcm: {8, 16, 24, 32}, float: {32, 64}}

// readFormat reads the fmt chunk.
func readFormat(chunk []byte) (Clip, Format, error) {
	if len(chunk) < 16 {
		return Clip{}, Format{}, broken("its format chunk is truncated")
	}
	tag := binary.LittleEndian.Uint16(chunk)
	if tag == extensible && len(chunk) >= 26 {
		tag = binary.LittleEndian.Uint16(chunk[24:])
	}
	rate := binary.LittleEndian.Uint32(chunk[4:])
	c := Clip{Channels: int(binary.LittleEndian.Uint16(chunk[2:])), Rate: int(min(rate, math.MaxInt32))}
	f := Format{Bits: int(binary.LittleEndian.Uint16(chunk[14:])), Float: tag == float}
	if !slices.Contains(widths[tag], f.Bits) {
		return Clip{}, Format{}, broken("format %d with %d bits is not supported", tag, f.Bits)
	}
	if err := c.Check(); err != nil {
		return Clip{}, Format{}, fault.Wrap(fault.InvalidParams, err, "read WAV file")
	}
	return c, f, nil
}

// samples reads all complete frames.
func (f Format) samples(data []byte, channels int) []float32 {
	size := f.Bits / 8
	count := len(data) / (size * channels) * channels
	out := make([]float32, count)
	for i := range out {
		out[i] = f.sample(data[i*size:])
	}
	return out
}

func (f Format) sample(b []byte) float32 {
	switch {
	case f.Float && f.Bits == 64:
		return finite(float32(math.Float64frombits(binary.LittleEndian.Uint64(b))))
	case f.Float:
		return finite(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case f.Bits == 8:
		return (float32(b[0]) - 128) / 128
	case f.Bits == 16:
		return float32(int16(binary.LittleEndian.Uint16(b))) / (1 << 15)
	case f.Bits == 24:
		return float32(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24)>>8) / (1 << 23)
	default:
		return float32(float64(int32(binary.LittleEndian.Uint32(b))) / (1 << 31))
	}
}

// finite replaces NaN and infinities with 0.
func finite(s float32) float32 {
	if s != s || s > math.MaxFloat32 || s < -math.MaxFloat32 {
		return 0
	}
	return s
}

// Header is the header of a WAV file with that many frames, with the channels and
// rate of a clip.
func Header(kind Clip, bits, frames int) ([]byte, error) {
	if err := kind.Check(); err != nil {
		return nil, err
	}
	size := frames * kind.Channels * bits / 8
	if size > math.MaxUint32-64 {
		return nil, fault.New(fault.Limit, "the audio is too long for a WAV file")
	}
	return kind.header(bits, size), nil
}

// Encode writes a WAV file of 16 or 24 bits, or of 32 bits in floating point.
// Integer samples are clipped at full scale.
func (c Clip) Encode(bits int) ([]byte, error) {
	if bits != 16 && bits != 24 && bits != 32 {
		return nil, fault.New(fault.InvalidParams, "cannot write WAV files of %d bits", bits).WithHint("use 16, 24 or 32")
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	out, err := Header(c, bits, c.Frames())
	if err != nil {
		return nil, err
	}
	out = slices.Grow(out, len(c.Samples)*bits/8+1)
	for _, s := range c.Samples {
		out = appendSample(out, s, bits)
	}
	if len(out)%2 == 1 {
		out = append(out, 0)
	}
	return out, nil
}

func (c Clip) header(bits, size int) []byte {
	le, frame := binary.LittleEndian, c.Channels*bits/8
	out := make([]byte, 0, 44)
	out = append(out, "RIFF"...)
	out = le.AppendUint32(out, uint32(36+size+size%2)) // Header saw to it
	out = append(out, "WAVEfmt "...)
	out = le.AppendUint32(out, 16)
	out = le.AppendUint16(out, map[int]uint16{16: pcm, 24: pcm, 32: float}[bits])
	out = le.AppendUint16(out, uint16(c.Channels))
	out = le.AppendUint32(out, uint32(c.Rate))
	out = le.AppendUint32(out, uint32(c.Rate*frame))
	out = le.AppendUint16(out, uint16(frame))
	out = le.AppendUint16(out, uint16(bits))
	return le.AppendUint32(append(out, "data"...), uint32(size)) // Header saw to it
}

func appendSample(out []byte, s float32, bits int) []byte {
	if bits == 32 {
		return binary.LittleEndian.AppendUint32(out, math.Float32bits(s))
	}
	full := float64(int(1) << (bits - 1))
	v := int32(math.Max(-full, math.Min(full-1, math.Round(float64(s)*full))))
	if bits == 16 {
		return append(out, byte(v), byte(v>>8))
	}
	return append(out, byte(v), byte(v>>8), byte(v>>16))
}

func broken(format string, args ...any) error {
	return fault.New(fault.InvalidParams, "read WAV file: "+format, args...).
		WithHint("give a RIFF WAVE file with PCM or floating-point samples")
}
