package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/server"
)

// chatCommand is `luanette chat`.
type chatCommand struct {
	clientFlags
	User string `placeholder:"NAME" default:"terminal" help:"Who is talking, for a server that keeps conversations."`
	Once string `placeholder:"MESSAGE" help:"Say this, print the answer and leave."`
}

const chatHelp = `/reset begins a new conversation, /help shows this, /quit leaves.
Everything else is said to the agent. Ctrl-C ends an answer.`

// Help is shown by `luanette chat --help`.
func (chatCommand) Help() string {
	return `Talk to an agent that has every tool of every upstream at hand. Answers go to
standard output as they arrive; tools that run are shown on standard error.

The model is Anthropic's with the key in ANTHROPIC_API_KEY, or whatever the
section [chat] of luanette.toml says. With --server the agent of a running server
answers, with the key in LUANETTE_KEY, and keeps the conversation.

` + chatHelp
}

// Run talks until there is nothing more to say.
func (c *chatCommand) Run(ctx context.Context, world *process) error {
	ctx = context.WithoutCancel(ctx) // an interrupt ends an answer, not the evening
	conversation, err := c.begin(ctx, world)
	if err != nil {
		return err
	}
	t := &talker{flags: c, world: world, chat: conversation}
	if c.Once != "" {
		err = t.say(ctx, c.Once)
	} else {
		err = t.loop(ctx)
	}
	return errors.Join(err, conversation.Close(ctx))
}

func (c *chatCommand) begin(ctx context.Context, world *process) (client.Chat, error) {
	defer spin(world, "connecting")()
	if c.Server != "" {
		return client.ConnectChat(c.Server, c.User, c.token(world))
	}
	loaded, err := c.load(world, nil)
	if err != nil {
		return nil, err
	}
	options := server.Options{Version: version, Stderr: io.Discard, Env: world.Env}
	if c.LogLevel != nil {
		options.Stderr = world.Stderr
	}
	srv, err := server.Build(ctx, loaded, options)
	if err != nil {
		return nil, err
	}
	conversation, err := client.LocalChat(ctx, srv, c.User, c.Wait)
	if err != nil {
		return nil, errors.Join(err, srv.Close(ctx))
	}
	return conversation, nil
}

// talker is a person at a terminal, or a pipe.
type talker struct {
	flags *chatCommand
	world *process
	chat  client.Chat
}

// loop reads messages until there are no more. That an answer fails is shown, and
// no error.
func (t *talker) loop(ctx context.Context) error {
	lines := openLines(t.world, func(string) []string { return nil })
	defer lines.Close()
	if terminalWidth(t.world.Stdout) > 0 {
		fmt.Fprintf(t.world.Stderr, "Luanette %s. /help lists commands, Ctrl-D leaves.\n", version)
	}
	for {
		line, err := lines.Prompt("you> ")
		switch {
		case errors.Is(err, errDropped):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		lines.Remember(line)
		if err := t.take(ctx, line); errors.Is(err, errQuit) {
			return nil
		} else if err != nil {
			t.complain(err)
		}
	}
}

// take does what a line says: a command, or something to say.
func (t *talker) take(ctx context.Context, line string) error {
	switch word, _, _ := strings.Cut(line, " "); {
	case word == "/reset":
		if err := t.chat.Reset(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintln(t.world.Stderr, "a new conversation begins")
		return err
	case word == "/help":
		_, err := fmt.Fprintln(t.world.Stderr, chatHelp)
		return err
	case word == "/quit", word == "/exit":
		return errQuit
	case strings.HasPrefix(word, "/"):
		return fault.New(fault.InvalidParams, "no command %s", word).WithHint("/help lists them")
	default:
		return t.say(ctx, line)
	}
}

// say says something and shows the answer as it arrives.
func (t *talker) say(ctx context.Context, message string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	shown := &shownAnswer{world: t.world, quiet: t.flags.JSON}
	reply, err := t.chat.Say(ctx, message, shown.event)
	shown.end()
	if err != nil {
		return err
	}
	if !t.flags.JSON {
		return nil
	}
	raw, err := json.Marshal(map[string]any{
		"responses": reply.Responses, "model": reply.Model, "usage": reply.Usage, "notices": reply.Notices, "message_id": reply.RequestID,
	})
	if err != nil {
		return err
	}
	return printJSON(t.world.Stdout, raw)
}

func (t *talker) complain(err error) {
	fmt.Fprintln(t.world.Stderr, err)
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintln(t.world.Stderr, " ", hint)
	}
}

// shownAnswer shows one answer: its text on standard output, what is done for it
// on standard error.
type shownAnswer struct {
	world  *process
	quiet  bool // text and tools are not shown
	block  int
	inLine bool // the last line of text has no end yet
	status bool // a status stands on the terminal's last line
}

func (s *shownAnswer) event(e agent.Event) {
	if s.quiet {
		return
	}
	switch e := e.(type) {
	case agent.Status:
		s.showStatus(e.Message)
	case agent.Text:
		s.clear()
		if e.Block > s.block {
			s.endLine()
			s.block = e.Block
		}
		fmt.Fprint(s.world.Stdout, plainText(e.Text))
		s.inLine = !strings.HasSuffix(e.Text, "\n")
	case agent.ToolUse:
		s.remark("→ %s %s", e.Tool, short(string(e.Input), 100))
	case agent.ToolResult:
		mark := "✓"
		if e.Failed {
			mark = "✗"
		}
		s.remark("%s %s (%v) %s", mark, e.Tool, e.Took.Round(time.Millisecond), short(e.Text, 80))
	case agent.Notice:
		s.remark("! %s", e.Message)
	}
}

// showStatus shows what is being done to somebody who is looking.
func (s *shownAnswer) showStatus(text string) {
	if terminalWidth(s.world.Stderr) == 0 || s.inLine {
		return
	}
	s.clear()
	fmt.Fprintf(s.world.Stderr, "\x1b[2m%s\x1b[0m", plainText(text))
	s.status = true
}

func (s *shownAnswer) clear() {
	if s.status {
		fmt.Fprint(s.world.Stderr, "\r\x1b[K")
		s.status = false
	}
}

// remark is a line beside the answer.
func (s *shownAnswer) remark(format string, args ...any) {
	s.clear()
	s.endLine()
	text := plainText(fmt.Sprintf(format, args...))
	if terminalWidth(s.world.Stderr) > 0 {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	fmt.Fprintln(s.world.Stderr, text)
}

func (s *shownAnswer) endLine() {
	if s.inLine {
		fmt.Fprintln(s.world.Stdout)
		s.inLine = false
	}
}

func (s *shownAnswer) end() {
	s.clear()
	s.endLine()
}

// short is the beginning of a text, in one line.
func short(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}

// plainText keeps a stranger's text from steering the terminal.
func plainText(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || c >= ' ' && c != 0x7f && (c < 0x80 || c > 0x9f) {
			return c
		}
		return -1
	}, text)
}
