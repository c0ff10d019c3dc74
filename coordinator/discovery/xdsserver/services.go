package xdsserver

import (
	"context"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/sotw/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// services are the two that clients use: all kinds of resources on one stream, as gRPC wants, and
// endpoints alone, for an Envoy with clusters of its own. The library's own server brings the
// services for everything else that Envoy knows, and makes the program larger.
type services struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	endpointv3.UnimplementedEndpointDiscoveryServiceServer
	whole sotw.Server  // each answer has all resources of a kind
	delta delta.Server // each answer has what changed
}

func newServices(ctx context.Context, caches cachev3.Cache, asks asks) *services {
	none := sotw.DeactivateLegacyWildcard() // an empty list of names means none, as gRPC has it
	return &services{
		whole: sotw.NewServer(ctx, caches, asks, none),
		delta: delta.NewServer(ctx, caches, asks, none),
	}
}

func (s *services) StreamAggregatedResources(
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer,
) error {
	return s.whole.StreamHandler(stream, resource.AnyType)
}

func (s *services) DeltaAggregatedResources(
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer,
) error {
	return s.delta.DeltaStreamHandler(stream, resource.AnyType)
}

func (s *services) StreamEndpoints(stream endpointv3.EndpointDiscoveryService_StreamEndpointsServer) error {
	return s.whole.StreamHandler(stream, resource.EndpointType)
}

func (s *services) DeltaEndpoints(stream endpointv3.EndpointDiscoveryService_DeltaEndpointsServer) error {
	return s.delta.DeltaStreamHandler(stream, resource.EndpointType)
}

// asks adds the names that clients request to the catalog before they are looked up.
type asks struct{ catalog *catalog }

func (a asks) OnStreamRequest(_ int64, r *discoveryv3.DiscoveryRequest) error {
	a.catalog.rejected(r.GetErrorDetail().GetMessage())
	return a.take(r.GetResourceNames())
}

func (a asks) OnStreamDeltaRequest(_ int64, r *discoveryv3.DeltaDiscoveryRequest) error {
	a.catalog.rejected(r.GetErrorDetail().GetMessage())
	return a.take(r.GetResourceNamesSubscribe())
}

// take adds the names of a request to the catalog. An error ends the stream, and the client tries
// the next replica.
func (a asks) take(names []string) error {
	if a.catalog.withholds(names) {
		return status.Error(codes.Unavailable, "this replica does not know all instances: records are damaged")
	}
	a.catalog.ask(names)
	return nil
}

func (asks) OnStreamOpen(context.Context, int64, string) error      { return nil }
func (asks) OnStreamClosed(int64, *core.Node)                       {}
func (asks) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }
func (asks) OnDeltaStreamClosed(int64, *core.Node)                  {}

func (asks) OnStreamResponse(context.Context, int64, *discoveryv3.DiscoveryRequest, *discoveryv3.DiscoveryResponse) {
}

func (asks) OnStreamDeltaResponse(int64, *discoveryv3.DeltaDiscoveryRequest, *discoveryv3.DeltaDiscoveryResponse) {
}
