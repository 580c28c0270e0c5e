package soundfont_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"reflect"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/soundfont"
	"github.com/luanette/luanette/internal/music/soundfont/soundfonttest"
)

func read(t *testing.T, raw []byte) *soundfont.Font {
	t.Helper()
	f, err := soundfont.Read(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRead(t *testing.T) {
	t.Parallel()
	f := read(t, soundfonttest.Font())
	want := soundfont.Info{Name: "Tiny", Version: "2.01", Author: "A test", Presets: 3, Instruments: 3, Samples: 2, SampleBytes: 2 * (soundfonttest.Rate + 500 + 92)}
	if f.Info != want {
		t.Errorf("info %+v, want %+v", f.Info, want)
	}
	var names []string
	for _, p := range f.Presets {
		names = append(names, p.Name)
	}
	if want := []string{"Sine", "Split", "Kit"}; !reflect.DeepEqual(names, want) || !f.HasDrums() {
		t.Errorf("presets %v, want %v", names, want)
	}
	split, err := f.Preset(0, 5)
	if err != nil {
		t.Fatal(err)
	}
	regions := []soundfont.Region{
		{"Split", "sine", 0, 59, 0, 127, 69, soundfonttest.Rate, true},
		{"Split", "sine", 60, 127, 100, 127, 69, soundfonttest.Rate, true},
	}
	if got := f.Regions(split); !reflect.DeepEqual(got, regions) {
		t.Errorf("regions %+v, want %+v", got, regions)
	}
	kits := []soundfont.Kit{{128, 0, "Kit", []soundfont.Drum{{36, "Bass Drum 1", "click"}, {38, "Acoustic Snare", "click"}}}}
	if got := f.Kits(); !reflect.DeepEqual(got, kits) {
		t.Errorf("kits %+v, want %+v", got, kits)
	}
	if _, err := f.Preset(1, 5); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a preset that is not there: %v", err)
	}
}

// TestRealFont checks that a General MIDI font has the presets of General MIDI.
func TestRealFont(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("/usr/share/sounds/sf2/TimGM6mb.sf2")
	if err != nil {
		t.Skip("no soundfont is installed (make system, or Debian's package timgm6mb-soundfont)")
	}
	f := read(t, raw)
	piano, err := f.Preset(0, 0)
	if err != nil || f.Info.Presets < 128 || !f.HasDrums() {
		t.Fatalf("%d presets, %v", f.Info.Presets, err)
	}
	low, high := 127, 0
	for _, r := range f.Regions(piano) {
		low, high = min(low, r.KeyLow), max(high, r.KeyHigh)
	}
	if low > 21 || high < 108 {
		t.Errorf("the piano has keys %d to %d", low, high)
	}
	drums := map[int]bool{}
	for _, d := range f.Kits()[0].Drums {
		drums[d.Key] = true
	}
	for key := 35; key <= 81; key++ {
		if !drums[key] {
			t.Errorf("no drum on key %d", key)
		}
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	good := soundfonttest.Font()
	short := bytes.Clone(good)
	binary.LittleEndian.PutUint32(short[16:], 1<<31) // a list longer than the file
	for name, raw := range map[string][]byte{
		"nothing": nil, "a text": []byte("RIFFxxxxWAVEfmt "), "cut off": good[:len(good)-40], "no tables": good[:12], "a list too long": short,
	} {
		if _, err := soundfont.Read(bytes.NewReader(raw), int64(len(raw))); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v, want invalid_params", name, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	good := soundfonttest.Font()
	tables := bytes.Index(good, []byte("pdta"))
	f.Add(good[tables:])
	f.Fuzz(func(t *testing.T, tail []byte) {
		raw := append(bytes.Clone(good[:12]), "LIST\x00\x00\x00\x00"...)
		binary.LittleEndian.PutUint32(raw[16:], uint32(len(tail)))
		raw = append(raw, tail...)
		font, err := soundfont.Read(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		for _, p := range font.Presets {
			for _, r := range font.Regions(p) {
				if r.KeyLow < 0 || r.KeyHigh > 127 || r.KeyLow > r.KeyHigh {
					t.Errorf("region %+v", r)
				}
			}
		}
		font.Kits()
	})
}
