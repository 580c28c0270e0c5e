package audio

import "math"

// MinLevel is the level of silence, in decibels relative to full scale. The lowest
// level in a file of 16 bits is -96.
const MinLevel = -120.0

// SilenceThreshold is the level below which a clip counts as silent.
const SilenceThreshold = -60.0

// Peak is the largest absolute sample.
func (c Clip) Peak() float64 {
	var peak float32
	for _, s := range c.Samples {
		peak = max(peak, s, -s)
	}
	return float64(peak)
}

// RMS is the root mean square of the samples.
func (c Clip) RMS() float64 {
	if len(c.Samples) == 0 {
		return 0
	}
	var sum float64
	for _, s := range c.Samples {
		sum += float64(s) * float64(s)
	}
	return math.Sqrt(sum / float64(len(c.Samples)))
}

// Decibels converts an amplitude to decibels relative to full scale, at least
// MinLevel.
func Decibels(level float64) float64 {
	if level <= 0 {
		return MinLevel
	}
	return math.Max(MinLevel, 20*math.Log10(level))
}

// FromDecibels converts decibels to a factor.
func FromDecibels(db float64) float64 { return math.Pow(10, db/20) }

// Info summarizes a clip.
type Info struct {
	Duration   float64 `json:"duration" jsonschema:"seconds"`
	SampleRate int     `json:"sample_rate"`
	Channels   int     `json:"channels"`
	Frames     int     `json:"frames" jsonschema:"samples of each channel"`
	PeakDB     float64 `json:"peak_db" jsonschema:"loudest sample, in decibels below full scale"`
	MeanDB     float64 `json:"mean_db" jsonschema:"root mean square, in decibels below full scale"`
	IsSilent   bool    `json:"is_silent" jsonschema:"whether nothing in it is louder than -60 dB"`
}

// Info summarizes the clip.
func (c Clip) Info() Info {
	peak := Decibels(c.Peak())
	return Info{
		Duration: c.Seconds(), SampleRate: c.Rate, Channels: c.Channels, Frames: c.Frames(),
		PeakDB: peak, MeanDB: Decibels(c.RMS()), IsSilent: peak < SilenceThreshold,
	}
}
