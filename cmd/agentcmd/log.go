package agentcmd

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"
)

// NewLogger logs for a person on a terminal, and JSON everywhere else.
func NewLogger(out *os.File, level slog.Level) *slog.Logger {
	if term.IsTerminal(int(out.Fd())) {
		return slog.New(tint.NewTextHandler(out, &tint.Options{
			Level: level, TimeFormat: time.TimeOnly,
			NoColor: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
		}))
	}
	return newJSONLogger(out, level)
}

func newJSONLogger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
}
