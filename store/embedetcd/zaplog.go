package embedetcd

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// lastError keeps the error with which etcd gives up: the panic itself says only what failed.
type lastError struct{ err atomic.Pointer[error] }

func (l *lastError) get() error {
	if p := l.err.Load(); p != nil {
		return *p
	}
	return nil
}

// newZapLogger adapts our logger for etcd. etcd's fatal lines become panics, so that an unreadable
// data directory does not end the process before it is reported.
func newZapLogger(to *slog.Logger, verbose bool, last *lastError, warned *warnings) *zap.Logger {
	least := zapcore.WarnLevel
	if verbose {
		least = zapcore.InfoLevel
	}
	core := &slogCore{LevelEnabler: least, to: to.Handler(), last: last, warned: warned}
	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic))
}

// slogCore writes zap's entries to a slog handler.
type slogCore struct {
	zapcore.LevelEnabler
	to     slog.Handler
	fields []zapcore.Field
	last   *lastError
	warned *warnings
}

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	with := *c
	with.fields = slices.Concat(c.fields, fields)
	return &with
}

func (c *slogCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && (gaveUp(e) || c.to.Enabled(context.Background(), slogLevel(e.Level))) {
		return checked.AddCore(e, c)
	}
	return checked
}

// gaveUp reports whether etcd panics after this entry.
func gaveUp(e zapcore.Entry) bool { return e.Level > zapcore.ErrorLevel }

func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if gaveUp(e) {
		for _, f := range fields {
			if err, is := f.Interface.(error); is && f.Type == zapcore.ErrorType {
				c.last.err.Store(&err)
			}
		}
	}
	r := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, 0)
	r.AddAttrs(slog.String("component", "etcd"))
	values := zapcore.NewMapObjectEncoder()
	for _, f := range slices.Concat(c.fields, fields) {
		f.AddTo(values)
	}
	held, ok := c.warned.pass(e, values.Fields)
	if !ok {
		return nil
	}
	if held > 0 {
		r.AddAttrs(slog.Int("repeated", held))
	}
	names := make([]string, 0, len(values.Fields))
	for name := range values.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r.AddAttrs(slog.Any(name, values.Fields[name]))
	}
	return c.to.Handle(context.Background(), r)
}

func (c *slogCore) Sync() error { return nil }

func slogLevel(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	case l == zapcore.InfoLevel:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}
