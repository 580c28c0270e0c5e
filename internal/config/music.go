package config

import (
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/tools/modelspec"
)

// Music configures the music backend.
type Music struct {
	Enabled  bool          `toml:"enabled" help:"offer the music tools as namespace hootenanny, in this process; an upstream of that name replaces them; docs/music.md"`
	Expose   []string      `toml:"expose" live:"yes" help:"which of the music tools our clients see directly: names, or all"`
	URL      string        `toml:"url" format:"http" help:"public URL of this server, for links to artifacts; the listen address when empty"`
	UploadMB int           `toml:"upload_mb" min:"1" help:"maximum size of a content that POST /cas accepts, in MiB"`
	Services MusicServices `toml:"services"`

	Models map[string]modelspec.Spec `toml:"models"`
}

// MusicServices holds the URLs of the models.
type MusicServices struct {
	Orpheus           string `toml:"orpheus" format:"http" help:"address of the Orpheus service; http://127.0.0.1:2000 when empty"`
	OrpheusClassifier string `toml:"orpheus_classifier" format:"http" help:"address of the Orpheus classifier; http://127.0.0.1:2001 when empty"`
	OrpheusBridge     string `toml:"orpheus_bridge" format:"http" help:"address of the Orpheus bridge service; http://127.0.0.1:2002 when empty"`
	OrpheusLoops      string `toml:"orpheus_loops" format:"http" help:"address of the Orpheus loops service; http://127.0.0.1:2003 when empty"`
	MusicGen          string `toml:"musicgen" format:"http" help:"address of the MusicGen service; http://127.0.0.1:2006 when empty"`
	CLAP              string `toml:"clap" format:"http" help:"address of the CLAP service; http://127.0.0.1:2007 when empty"`
	YuE               string `toml:"yue" format:"http" help:"address of the YuE service; http://127.0.0.1:2008 when empty"`
	BeatThis          string `toml:"beatthis" format:"http" help:"address of the beat_this service; http://127.0.0.1:2012 when empty"`
	Anticipatory      string `toml:"anticipatory" format:"http" help:"address of the Anticipatory Music Transformer; http://127.0.0.1:2011 when empty"`
}

func defaultMusic() Music { return Music{UploadMB: 256} }

func (c Music) check() error {
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		if err := c.Models[name].Check(name); err != nil {
			return err
		}
	}
	return nil
}
