package config

import (
	"net/url"

	"github.com/luanette/luanette/internal/base/fault"
)

// Hoot configures the music backend.
type Hoot struct {
	Enabled  bool         `toml:"enabled" help:"offer the music tools as namespace hootenanny, in this process; an upstream of that name replaces them"`
	Expose   []string     `toml:"expose" live:"yes" help:"which of the music tools our clients see directly: names, or all"`
	URL      string       `toml:"url" help:"public URL of this server, for links to artifacts; the listen address when empty"`
	UploadMB int          `toml:"upload_mb" help:"maximum size of a content that POST /cas accepts, in MiB"`
	Services HootServices `toml:"services"`
}

// HootServices holds the URLs of the models.
type HootServices struct {
	Orpheus    string `toml:"orpheus" help:"address of the Orpheus service; http://127.0.0.1:2000 when empty"`
	Classifier string `toml:"orpheus_classifier" help:"address of the Orpheus classifier; http://127.0.0.1:2001 when empty"`
	Bridge     string `toml:"orpheus_bridge" help:"address of the Orpheus bridge service; http://127.0.0.1:2002 when empty"`
	Loops      string `toml:"orpheus_loops" help:"address of the Orpheus loops service; http://127.0.0.1:2003 when empty"`
	MusicGen   string `toml:"musicgen" help:"address of the MusicGen service; http://127.0.0.1:2006 when empty"`
	CLAP       string `toml:"clap" help:"address of the CLAP service; http://127.0.0.1:2007 when empty"`
	YuE        string `toml:"yue" help:"address of the YuE service; http://127.0.0.1:2008 when empty"`
	BeatThis   string `toml:"beatthis" help:"address of the beat_this service; http://127.0.0.1:2012 when empty"`
}

func defaultHoot() Hoot { return Hoot{Enabled: true, UploadMB: 256} }

func (c Hoot) check() error {
	if c.UploadMB < 1 {
		return fault.New(fault.Config, "hoot.upload_mb: %d is too small", c.UploadMB).WithHint("use 1 or more")
	}
	s := c.Services
	for key, address := range map[string]string{
		"url": c.URL, "services.orpheus": s.Orpheus, "services.orpheus_classifier": s.Classifier, "services.orpheus_bridge": s.Bridge,
		"services.orpheus_loops": s.Loops, "services.musicgen": s.MusicGen, "services.clap": s.CLAP, "services.yue": s.YuE, "services.beatthis": s.BeatThis,
	} {
		if address == "" {
			continue
		}
		if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fault.New(fault.Config, "hoot.%s: %q is no http address", key, address).WithHint("give one such as http://127.0.0.1:2000")
		}
	}
	return nil
}
