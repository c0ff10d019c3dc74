//go:build !race

package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/coordinator/access"
	"github.com/leasehold/leasehold/coordinator/view"
	"github.com/leasehold/leasehold/coordinator/web"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/tests/browser"
)

// announce has replicas say where their pages are.
func (x *exhibit) announce(pages map[string]string) {
	x.t.Helper()
	records := map[string]any{}
	for id, at := range pages {
		records[x.keys.Replica(id)] = store.Replica{Schema: store.Schema, ID: id, Page: at, Since: x.now}
	}
	x.put(records)
}

// beside opens a second replica of the same shard, whose process can be ended.
func (x *exhibit) beside(id string) (server *web.Server, kill func()) {
	x.t.Helper()
	deps := idle(x.t)
	deps.Replica, deps.Store = x.still, x.st
	server, err := web.New(web.Config{Listen: loopback, Shard: "test", ReplicaID: id}, deps)
	if err == nil {
		err = server.Listen(x.t.Context())
	}
	if err != nil {
		x.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	ended := false
	kill = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			x.t.Errorf("run: %v", err)
		}
	}
	x.t.Cleanup(kill)
	return server, kill
}

// A page whose replica is gone moves to another replica that is ready, to the same place.
//
// proves WEB-1
func TestThePageMovesToAnotherReplica(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.group("web", 3)
	x.still.set(ready(x.now))
	first, kill := x.beside("coord-b")
	gone, killed := x.beside("coord-0")
	killed()
	x.announce(map[string]string{"coord-a": x.server.Page(), "coord-b": first.Page(), "coord-0": gone.Page()})
	b := browser.Open(t)
	tab := b.Tab(t, browser.Look{Width: 1440, Height: 900})
	tab.Go(first.URL() + "/g/web?show=live&span=6h")
	tab.Until("a live page", "stream?.readyState === 1")
	kill()
	tab.Until("that its replica is missed", "stream === null")
	browser.Eval[int](tab, "heard = Date.now() - 60000, close(), open(), 1") // twelve seconds of silence
	tab.Until("the page at the other replica", fmt.Sprintf("location.origin === %q", x.server.URL()))
	tab.Until("that it is live", "stream?.readyState === 1 && !root.classList.contains('stale')")
	if at := browser.Eval[string](tab, "location.pathname + location.search"); at != "/g/web?show=live&span=6h" {
		t.Errorf("it is at %s", at)
	}
	x.phase("web", 2, store.Draining)
	tab.Until("a change there", `document.querySelector('#s-2 a')?.className === 'leaving'`)
	for _, e := range tab.Errors() {
		if !strings.Contains(e, "ERR_CONNECTION_REFUSED") && !strings.Contains(e, "ERR_INCOMPLETE_CHUNKED_ENCODING") &&
			!strings.Contains(e, "ERR_FAILED") {
			t.Error(e)
		}
	}
}

// Only the page of another replica may ask from another origin, and only whether this one is ready;
// a page that is read under a name that its replica does not announce is told of no others.
//
// proves WEB-2
func TestWhatAnotherReplicasPageLearns(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.still.set(ready(x.now))
	const other, evil = "http://127.0.0.1:1", "http://evil.example"
	x.announce(map[string]string{
		"coord-a": x.server.Page(), "coord-b": other, "coord-c": "http://x; script-src *", "coord-d": "http://x/path",
		"coord-e": "javascript:alert(1)",
	})
	ask := func(path, origin string) (int, http.Header) {
		code, _, h := x.get(path, with("Origin", origin), with("Sec-Fetch-Site", "cross-site"),
			with("Sec-Fetch-Mode", "cors"))
		return code, h
	}
	for _, c := range []struct {
		path, origin string
		code         int
		allowed      string
	}{
		{"/readyz", other, 200, other},
		{"/readyz", evil, 403, ""},
		{"/readyz?verbose", other, 403, ""},
		{"/livez", other, 403, ""},
		{"/", other, 403, ""},
		{"/live?page=/&once", other, 403, ""},
		{"/metrics", other, 403, ""},
		{"/readyz", "http://x; script-src *", 403, ""},
	} {
		code, h := ask(c.path, c.origin)
		if code != c.code || h.Get("Access-Control-Allow-Origin") != c.allowed ||
			h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s from %s: %d, allowed %q", c.path, c.origin, code, h.Get("Access-Control-Allow-Origin"))
		}
	}
	_, body, h := x.get("/")
	if !strings.Contains(body, `data-others="`+other+`"`) ||
		!strings.Contains(h.Get("Content-Security-Policy"), "connect-src 'self' "+other+"; ") {
		t.Errorf("the page does not know the others: %s", h.Get("Content-Security-Policy"))
	}
	_, body, h = x.get("/", asked("localhost"))
	if strings.Contains(body, "data-others") ||
		!strings.Contains(h.Get("Content-Security-Policy"), "connect-src 'self'; ") {
		t.Error("a page that is read under another name is told of other replicas")
	}
}

// proves WEB-1: where browsers reach a page is announced as far as it is known
func TestWhereThePageIs(t *testing.T) {
	t.Parallel()
	p := newPKI(t)
	for name, c := range map[string]struct {
		cfg  web.Config
		want string // the beginning
	}{
		"loopback":   {web.Config{Listen: loopback}, "http://127.0.0.1:"},
		"everywhere": {p.everywhere(), ""},
		"told": {web.Config{Listen: "0.0.0.0:0", Advertise: "coord-a:7421", Access: access.Config{
			CertFile: p.server.File, KeyFile: p.server.Key, TokenFile: secret(t, token),
		}}, "https://coord-a:7421"},
	} {
		c.cfg.Access.TokenFile = secret(t, token)
		got := open(t, c.cfg, web.Deps{}).server.Page()
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// everyKind writes a group with an instance of each kind, and a slot without one.
func (x *exhibit) everyKind(name string) {
	x.t.Helper()
	x.group(name, len(view.Kinds))
	set := func(slot int, change func(*store.Instance)) string {
		id := fmt.Sprintf("%s-%d-a", name, slot)
		i := store.Instance{
			Schema: store.Schema, ID: id, Group: name, Slot: slot, Phase: store.Running, Managed: true, Zone: "a", Since: x.now,
			Created: x.now, Spec: store.InstanceSpec{Provider: "mem"}, Template: "t1",
		}
		change(&i)
		x.put(map[string]any{x.keys.Instance(id): i})
		return id
	}
	set(0, func(i *store.Instance) { i.Drain = &store.Drain{Lost: true} })
	set(1, func(i *store.Instance) { i.Dead = true })
	sick := set(2, func(*store.Instance) {})
	x.put(map[string]any{x.keys.Report(sick): store.Report{
		Schema: store.Schema, Instance: sick, BootID: "b", Received: x.now,
	}})
	silent := set(3, func(*store.Instance) {})
	x.put(map[string]any{x.keys.Alive(silent): store.Alive{
		Schema: store.Schema, Instance: silent, BootID: "b", State: store.StreamLost, Since: x.now,
	}})
	set(4, func(i *store.Instance) { i.Doomed = &store.Doom{Rule: "SPOT-2", At: x.now} })
	set(5, func(i *store.Instance) { i.Phase = store.Booting })
	set(6, func(i *store.Instance) { i.Phase = store.Draining })
	set(8, func(i *store.Instance) { i.Phase = store.Finished })
	id := fmt.Sprintf("%s-9-a", name)
	if _, err := x.st.Commit(x.t.Context(),
		store.Txn{Writes: []store.Write{store.Delete(x.keys.Instance(id))}}); err != nil {
		x.t.Fatal(err)
	}
}

// The states are told apart by readers with each deficiency of colour vision, in both schemes: each
// has a sign of its own, which stands out from its ground as it is seen, and what is sick does not
// look like what is live.
//
// proves WEB-1
func TestColourVision(t *testing.T) {
	t.Parallel()
	x := newExhibit(t)
	x.everyKind("web")
	b := browser.Open(t)
	for _, dark := range []bool{false, true} {
		tab := b.Tab(t, browser.Look{Width: 1440, Height: 900, Dark: dark})
		tab.Go(x.server.URL() + "/g/web")
		tab.Until("all kinds", fmt.Sprintf(
			"new Set([...document.querySelectorAll('.cells li > *')].map(c => c.className)).size === %d", len(view.Kinds)))
		type cell struct {
			Kind, Sign string
			X, Y, W, H float64
		}
		cells := browser.Eval[[]cell](tab, `[...document.querySelectorAll('.cells li > *')].map(c => {
			const b = c.getBoundingClientRect();
			return {
				Kind: c.className, Sign: c.textContent.trim(), X: b.x + scrollX, Y: b.y + scrollY, W: b.width, H: b.height};
		})`)
		signs := map[string]string{}
		for _, c := range cells {
			if other, taken := signs[c.Sign]; taken && other != c.Kind || c.Sign == "" {
				t.Errorf("%s and %s have the sign %q", c.Kind, other, c.Sign)
			}
			signs[c.Sign] = c.Kind
		}
		for _, deficiency := range append([]browser.Vision{browser.Ordinary}, browser.Deficiencies...) {
			tab.See(deficiency)
			picture, err := png.Decode(bytes.NewReader(tab.Picture()))
			if err != nil {
				t.Fatal(err)
			}
			grounds := map[string]color.Color{}
			for _, c := range cells {
				ground, sign := inks(picture, image.Rect(int(c.X)+3, int(c.Y)+3, int(c.X+c.W)-3, int(c.Y+c.H)-3))
				grounds[c.Kind] = ground
				if k := contrast(ground, sign); k < 3 {
					t.Errorf("%s, dark %t: the sign of %s has a contrast of %.1f", deficiency, dark, c.Kind, k)
				}
			}
			if deficiency == "achromatopsia" {
				continue // without any colours the signs alone tell
			}
			for _, kind := range []string{"lost", "dead", "unhealthy", "suspect"} {
				if d := apart(grounds[kind], grounds["live"]); d < 20 {
					t.Errorf("%s, dark %t: %s looks like live: %.0f apart", deficiency, dark, kind, d)
				}
			}
		}
	}
}

// inks are the colour that most of an area has, and the one that stands out most from it.
func inks(of image.Image, area image.Rectangle) (ground, sign color.Color) {
	count := map[color.Color]int{}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			count[of.At(x, y)]++
		}
	}
	for c, n := range count {
		if ground == nil || n > count[ground] {
			ground = c
		}
	}
	for c := range count {
		if sign == nil || contrast(ground, c) > contrast(ground, sign) {
			sign = c
		}
	}
	return ground, sign
}

// linear are the parts of a colour as light.
func linear(c color.Color) (out [3]float64) {
	r, g, b, _ := c.RGBA()
	for i, v := range []uint32{r, g, b} {
		s := float64(v) / 0xffff
		if out[i] = s / 12.92; s > 0.04045 {
			out[i] = math.Pow((s+0.055)/1.055, 2.4)
		}
	}
	return out
}

// contrast is WCAG's contrast ratio, from 1 to 21.
func contrast(a, b color.Color) float64 {
	light := func(c color.Color) float64 { l := linear(c); return 0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2] + 0.05 }
	x, y := light(a), light(b)
	return max(x, y) / min(x, y)
}

// apart is how different two colours look: their distance in CIELAB. Two is just seen.
func apart(a, b color.Color) float64 {
	lab := func(c color.Color) [3]float64 {
		l := linear(c)
		f := func(t float64) float64 {
			if t > 216.0/24389 {
				return math.Cbrt(t)
			}
			return (24389.0/27*t + 16) / 116
		}
		x := f((0.4124*l[0] + 0.3576*l[1] + 0.1805*l[2]) / 0.9505)
		y := f(0.2126*l[0] + 0.7152*l[1] + 0.0722*l[2])
		z := f((0.0193*l[0] + 0.1192*l[1] + 0.9505*l[2]) / 1.089)
		return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
	}
	p, q := lab(a), lab(b)
	return math.Sqrt((p[0]-q[0])*(p[0]-q[0]) + (p[1]-q[1])*(p[1]-q[1]) + (p[2]-q[2])*(p[2]-q[2]))
}
