package browser

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

//go:embed axe/axe.min.js.gz
var axe []byte

// patience is how long anything in a page may take: other tests may run beside it.
const patience = 2 * time.Minute

// Browser is a running Chromium.
type Browser struct{ ctx context.Context }

// Open starts a browser, which ends with the test.
func Open(t testing.TB) *Browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 { // its sandbox refuses root, and all that it opens is ours
		options = append(options, chromedp.NoSandbox)
	}
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, stop := chromedp.NewContext(allocated)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium (scripts/test-needs.sh installs it): %v", err)
	}
	return &Browser{ctx}
}

// Tab is a page that is open.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu     sync.Mutex
	errors []string
}

// Keys that have no character.
const (
	Right = kb.ArrowRight
	Enter = kb.Enter

	Tabulator = kb.Tab
)

// Look is how a tab shows pages.
type Look struct {
	Width, Height int64
	Dark          bool
	NoScripts     bool
}

// Tab opens an empty tab.
func (b *Browser) Tab(t testing.TB, look Look) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	tab := &Tab{t: t, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil { // opens it, without a time limit: that would be the tab's
		t.Fatalf("open a tab: %v", err)
	}
	messages := chromedp.Console(ctx)
	var heard sync.WaitGroup
	heard.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			tab.hear(m)
		}
	})
	t.Cleanup(func() {
		cancel()
		heard.Wait()
	})
	scheme := "light"
	if look.Dark {
		scheme = "dark"
	}
	tab.Run("set the look",
		chromedp.EmulateViewport(look.Width, look.Height),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: look.NoScripts}),
	)
	return tab
}

// Vision is how a reader sees colours.
type Vision = emulation.SetEmulatedVisionDeficiencyType

// Ordinary vision, and the deficiencies of colour vision.
const Ordinary Vision = "none"

// Deficiencies are the deficiencies of colour vision that a browser can imitate.
var Deficiencies = []Vision{"protanopia", "deuteranopia", "tritanopia", "achromatopsia"}

// See has the page shown as a reader with a deficiency of colour vision sees it.
func (t *Tab) See(as Vision) {
	t.t.Helper()
	t.Run("see as with "+string(as),
		command(emulation.SetEmulatedVisionDeficiency, emulation.SetEmulatedVisionDeficiencyParams{Type: as}))
}

// command is a command of the protocol that answers nothing.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// hear takes note of what goes wrong in the page. Refusals by the content security policy are
// errors too.
func (t *Tab) hear(m chromedp.ConsoleMessage) {
	if !m.IsException() && m.Type != "error" && m.Type != "warning" && m.Type != "assert" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors = append(t.errors, m.String())
}

// Errors are what the page or the browser complained of since the last call.
func (t *Tab) Errors() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.errors
	t.errors = nil
	return all
}

// Run does something in the tab, or fails the test.
func (t *Tab) Run(what string, actions ...chromedp.Action[chromedp.Void]) {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.t.Fatalf("%s: %v; errors in the page: %q", what, err, t.Errors())
	}
}

// Go opens an address.
func (t *Tab) Go(url string) {
	t.t.Helper()
	t.Run("open "+url, chromedp.Navigate(url))
}

// Until waits until an expression of JavaScript is true, also on a page that is opened meanwhile.
func (t *Tab) Until(what, expression string) {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if is {
			return
		}
		select {
		case <-ctx.Done():
			t.t.Fatalf("%s: not within %s: %v; errors in the page: %q; it shows:\n%s", what, patience, err, t.Errors(), t.Text())
		case <-tick.C:
		}
	}
}

// Eval returns the value of an expression, or what a promise resolves to.
func Eval[T any](t *Tab, expression string) T {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.t.Fatalf("%s: %v; errors in the page: %q", expression, err, t.Errors())
	}
	return value
}

// Press presses keys.
func (t *Tab) Press(keys string) {
	t.t.Helper()
	t.Run("press "+keys, chromedp.KeyEvent(keys))
}

// Text is the text of the page as a reader sees it.
func (t *Tab) Text() string { return Eval[string](t, "document.body.innerText") }

// Picture is the whole page as PNG.
func (t *Tab) Picture() []byte {
	t.t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	beyond := true
	picture, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (page.CaptureScreenshotResult,
		error,
	) {
		return cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &beyond})
	})
	if err != nil {
		t.t.Fatalf("take a picture: %v", err)
	}
	return picture.Data
}

// Audit returns which rules for accessible pages the page violates, and where.
func (t *Tab) Audit() []string {
	t.t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(axe))
	if err != nil {
		t.t.Fatal(err)
	}
	script, err := io.ReadAll(z)
	if err != nil {
		t.t.Fatal(err)
	}
	t.Run("load axe-core", chromedp.Evaluate[chromedp.Void](string(script)))
	return Eval[[]string](t, `axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.flatMap(
		v => v.nodes.slice(0, 3).map(n => v.id + ': ' + v.help + ': ' + n.html.slice(0, 200) + ' ' + (n.any[0]?.message || ''))))`)
}
