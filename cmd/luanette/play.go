package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/abc"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/music/synth"
)

// playCommand is `luanette play`.
type playCommand struct {
	File      string   `arg:"" complete:"file" help:"A MIDI file (.mid), a tune in ABC notation (.abc) or a sound (.wav)."`
	SoundFont string   `name:"soundfont" type:"path" placeholder:"FILE" help:"SoundFont that renders MIDI and ABC (default: one of the system's)."`
	Gain      *float64 `placeholder:"DB" help:"Decibels to add, instead of making the loudest moment as loud as it can be."`
	Out       string   `short:"o" type:"path" placeholder:"FILE" help:"Write the sound to a WAV file instead of playing it."`
}

// Help is shown by `luanette play --help`.
func (playCommand) Help() string {
	return `Renders a MIDI file or a tune with a SoundFont, and plays it through the first of
aplay, paplay, ffplay and afplay that works. What in a tune is not played is a
warning on standard error.

  luanette play reel.abc
  luanette play song.mid --soundfont FluidR3_GM.sf2
  luanette play reel.abc --out reel.wav`
}

// Run renders the file and plays it.
func (c *playCommand) Run(ctx context.Context, proc *process) error {
	if strings.EqualFold(filepath.Ext(c.File), ".wav") {
		return c.playSound(ctx, proc)
	}
	music, err := c.read(proc)
	if err != nil {
		return err
	}
	if c.Out != "" {
		return c.renderTo(ctx, proc, music, c.Out)
	}
	if len(soundPlayers()) == 0 {
		return noPlayer()
	}
	dir, err := os.MkdirTemp("", "luanette-play-*")
	if err != nil {
		return fault.Wrap(fault.Internal, err, "create temporary folder")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	sound := filepath.Join(dir, "sound.wav")
	if err := c.renderTo(ctx, proc, music, sound); err != nil {
		return err
	}
	return playFile(ctx, proc, sound)
}

// playSound plays a WAV file as it is.
func (c *playCommand) playSound(ctx context.Context, proc *process) error {
	if c.Out != "" {
		return fault.New(fault.InvalidParams, "%s is a WAV file already", c.File).WithHint("copy the file instead of using --out")
	}
	head := make([]byte, 12)
	file, err := os.Open(c.File)
	if err == nil {
		_, err = io.ReadFull(file, head)
		_ = file.Close() // only read
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return unreadable(err)
	case !bytes.HasPrefix(head, []byte("RIFF")) || !bytes.HasSuffix(head, []byte("WAVE")):
		return fault.New(fault.InvalidParams, "%s is not a WAV file", c.File)
	case len(soundPlayers()) == 0:
		return noPlayer()
	}
	return playFile(ctx, proc, c.File)
}

func unreadable(err error) error {
	return fault.Wrap(fault.NotFound, err, "play")
}

// read reads a MIDI file or a tune, and prints the warnings about it.
func (c *playCommand) read(proc *process) (*smf.File, error) {
	kind := strings.ToLower(filepath.Ext(c.File))
	limit := int64(smf.MaxSize)
	switch kind {
	case ".mid", ".midi":
	case ".abc":
		limit = abc.MaxText
	default:
		return nil, fault.New(fault.InvalidParams, "%s: the name does not end in .mid, .abc or .wav", c.File).
			WithHint("rename the file by what it contains")
	}
	info, err := os.Stat(c.File)
	if err != nil {
		return nil, unreadable(err)
	}
	if info.Size() > limit {
		return nil, fault.New(fault.Limit, "%s has %d bytes, more than %d", c.File, info.Size(), limit).WithHint("split the file")
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return nil, unreadable(err)
	}
	if kind == ".abc" {
		return c.convert(proc, string(data))
	}
	return smf.Decode(data)
}

// convert converts a tune to MIDI.
func (c *playCommand) convert(proc *process, text string) (*smf.File, error) {
	tune, found := abc.Parse(text)
	for _, w := range found.Warnings {
		fmt.Fprintf(proc.Stderr, "%s: %s\n", c.File, w)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return abc.ToMIDI(tune, abc.Options{})
}

// renderTo renders the music to a WAV file.
func (c *playCommand) renderTo(ctx context.Context, proc *process, music *smf.File, path string) error {
	name, err := c.fontFile()
	if err != nil {
		return err
	}
	samples, font, err := loadFont(name)
	if err != nil {
		return err
	}
	defer func() { _ = samples.Close() }()                            // only read
	file, err := os.CreateTemp(filepath.Dir(path), ".luanette-*.wav") // what is there stays until all is rendered
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "write the sound")
	}
	defer func() { _ = os.Remove(file.Name()) }() // after an error
	defer func() { _ = file.Close() }()           // likewise
	out := bufio.NewWriterSize(file, 1<<16)
	o := synth.Options{Normalize: c.Gain == nil}
	if c.Gain != nil {
		o.Gain = *c.Gain
	}
	result, err := font.Play(ctx, out, music, o)
	if err = cmp.Or(err, out.Flush(), file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(proc.Stdout, "%s: %.1f seconds with %s\n", filepath.Base(c.File), result.Seconds, filepath.Base(name))
	if err == nil && path == c.Out {
		_, err = fmt.Fprintf(proc.Stdout, "written to %s\n", path)
	}
	return err
}

// systemFonts are where Debian, Fedora, Arch and Homebrew put SoundFonts.
var systemFonts = []string{
	"/usr/share/sounds/sf2/default-GM.sf2", "/usr/share/sounds/sf2/*.sf2", "/usr/share/soundfonts/default.sf2", "/usr/share/soundfonts/*.sf2",
	"/usr/local/share/soundfonts/*.sf2", "/opt/homebrew/share/soundfonts/*.sf2", "/opt/homebrew/share/fluid-synth/sf2/*.sf2",
}

// fontFile is the SoundFont that was named, or one of the system's.
func (c *playCommand) fontFile() (string, error) {
	name := c.SoundFont
	for i := 0; name == "" && i < len(systemFonts); i++ {
		if found, _ := filepath.Glob(systemFonts[i]); len(found) > 0 { // only a malformed pattern is an error
			name = found[0]
		}
	}
	if name == "" {
		return "", fault.New(fault.NotFound, "no SoundFont is installed").
			WithHint("install one (Debian: apt install timgm6mb-soundfont), or name a file with --soundfont")
	}
	return name, nil
}

// loadFont loads a SoundFont. Its file stays open while it plays, for the samples.
func loadFont(name string) (io.Closer, *synth.Font, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, fault.Wrap(fault.NotFound, err, "read the SoundFont")
	}
	info, err := file.Stat()
	if err != nil {
		_ = file.Close()
		return nil, nil, fault.Wrap(fault.NotFound, err, "read the SoundFont")
	}
	font, err := synth.Load(file, info.Size())
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, font, nil
}

// playerCommands are the programs that play a WAV file, with their arguments before it.
var playerCommands = [][]string{
	{"aplay", "-q"},
	{"paplay"},
	{"ffplay", "-nodisp", "-autoexit", "-loglevel", "error"},
	{"afplay"},
}

// soundPlayers are the commands of the players that are installed.
func soundPlayers() (list [][]string) {
	for _, command := range playerCommands {
		if path, err := exec.LookPath(command[0]); err == nil {
			list = append(list, append([]string{path}, command[1:]...))
		}
	}
	return list
}

func noPlayer() error {
	return fault.New(fault.Unavailable, "no program that plays sound is installed: none of aplay, paplay, ffplay and afplay is in PATH").
		WithHint("install one (Debian: apt install alsa-utils, pulseaudio-utils or ffmpeg), or write a file with --out FILE")
}

// playFile plays a WAV file with the first player that succeeds: aplay fails where only
// another sound server has the device.
func playFile(ctx context.Context, proc *process, path string) error {
	var failures []string
	for _, command := range soundPlayers() {
		var said bytes.Buffer
		player := exec.CommandContext(ctx, command[0], append(command[1:], path)...)
		player.Stdin, player.Stdout, player.Stderr = nil, proc.Stdout, &said
		err := player.Run()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		failures = append(failures, fmt.Sprintf("%s: %v: %s", filepath.Base(command[0]), err, short(strings.TrimSpace(said.String()), 200)))
	}
	return fault.New(fault.Unavailable, "the sound cannot be played: %s", strings.Join(failures, "; ")).
		WithHint("check the sound device, or write a file with --out FILE")
}
