package audio

import (
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/scripting/host"
)

// change(what, clip…, options) returns another clip.
func change(args host.Args) ([]host.Value, error) {
	what, err := args.String(1)
	if err != nil {
		return nil, err
	}
	c, err := clip(args, 2)
	if err != nil {
		return nil, err
	}
	var how struct {
		A, B  float64
		Named string
	}
	if err := args.Decode(5, &how); err != nil {
		return nil, err
	}
	switch what {
	case "resample":
		c, err = c.Resample(small(int64(how.A)), audio.Quality(how.Named))
	case "to_mono":
		c = c.Mono()
	case "to_stereo":
		c = c.Stereo()
	case "trim":
		c = c.Trim(how.A, how.B)
	case "pad":
		c, err = c.Pad(how.A, how.B)
	case "fade":
		c, err = c.Fade(how.A, how.B, audio.Curve(how.Named))
	case "gain":
		c = c.Gain(how.A)
	case "normalize":
		c = c.Normalize(how.A)
	case "reverse":
		c = c.Reverse()
	default:
		err = fault.New(fault.Internal, "audio cannot %s", what)
	}
	if err != nil {
		return nil, err
	}
	return values(c), nil
}

// join(what, packed samples of all, options) combines clips.
func join(args host.Args) ([]host.Value, error) {
	what, err := args.String(1)
	if err != nil {
		return nil, err
	}
	data, err := args.String(2)
	if err != nil {
		return nil, err
	}
	var how struct {
		Clips []struct{ Bytes, Channels, Rate int64 }
		Gains []float64
	}
	if err := args.Decode(3, &how); err != nil {
		return nil, err
	}
	var clips []audio.Clip
	for _, one := range how.Clips {
		if one.Bytes < 0 || one.Bytes > int64(len(data)) {
			return nil, fault.New(fault.Internal, "audio cannot %s %d bytes", what, one.Bytes)
		}
		c := audio.Clip{Samples: unpack(data[:one.Bytes]), Channels: small(one.Channels), Rate: small(one.Rate)}
		if err := c.Check(); err != nil {
			return nil, err
		}
		clips, data = append(clips, c), data[one.Bytes:]
	}
	var c audio.Clip
	if what == "mix" {
		c, err = audio.Mix(clips, how.Gains)
	} else {
		c, err = audio.Concat(clips)
	}
	if err != nil {
		return nil, err
	}
	return values(c), nil
}
