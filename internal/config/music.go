package config

import (
	"maps"
	"net/url"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/tools/modelspec"
)

// Music configures the music backend.
type Music struct {
	Enabled  bool          `toml:"enabled" help:"offer the music tools as namespace hootenanny, in this process; an upstream of that name replaces them; docs/music.md"`
	Expose   []string      `toml:"expose" live:"yes" help:"which of the music tools our clients see directly: names, or all"`
	URL      string        `toml:"url" help:"public URL of this server, for links to artifacts; the listen address when empty"`
	UploadMB int           `toml:"upload_mb" help:"maximum size of a content that POST /cas accepts, in MiB"`
	Services MusicServices `toml:"services"`

	Models map[string]modelspec.Spec `toml:"models"`
}

// MusicServices holds the URLs of the models.
type MusicServices struct {
	Orpheus           string `toml:"orpheus" help:"address of the Orpheus service; http://127.0.0.1:2000 when empty"`
	OrpheusClassifier string `toml:"orpheus_classifier" help:"address of the Orpheus classifier; http://127.0.0.1:2001 when empty"`
	OrpheusBridge     string `toml:"orpheus_bridge" help:"address of the Orpheus bridge service; http://127.0.0.1:2002 when empty"`
	OrpheusLoops      string `toml:"orpheus_loops" help:"address of the Orpheus loops service; http://127.0.0.1:2003 when empty"`
	MusicGen          string `toml:"musicgen" help:"address of the MusicGen service; http://127.0.0.1:2006 when empty"`
	CLAP              string `toml:"clap" help:"address of the CLAP service; http://127.0.0.1:2007 when empty"`
	YuE               string `toml:"yue" help:"address of the YuE service; http://127.0.0.1:2008 when empty"`
	BeatThis          string `toml:"beatthis" help:"address of the beat_this service; http://127.0.0.1:2012 when empty"`
	Anticipatory      string `toml:"anticipatory" help:"address of the Anticipatory Music Transformer; http://127.0.0.1:2011 when empty"`
}

func defaultMusic() Music { return Music{UploadMB: 256} }

func (c Music) check() error {
	if c.UploadMB < 1 {
		return fault.New(fault.Config, "music.upload_mb: %d is too small", c.UploadMB).WithHint("use 1 or more")
	}
	s := c.Services
	for key, address := range map[string]string{
		"url": c.URL, "services.orpheus": s.Orpheus, "services.orpheus_classifier": s.OrpheusClassifier, "services.orpheus_bridge": s.OrpheusBridge,
		"services.orpheus_loops": s.OrpheusLoops, "services.musicgen": s.MusicGen, "services.clap": s.CLAP, "services.yue": s.YuE, "services.beatthis": s.BeatThis,
		"services.anticipatory": s.Anticipatory,
	} {
		if address == "" {
			continue
		}
		if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fault.New(fault.Config, "music.%s: %q is no http address", key, address).WithHint("give one such as http://127.0.0.1:2000")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if err := c.Models[name].Check(name); err != nil {
			return err
		}
	}
	return nil
}
