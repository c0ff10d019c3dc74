package xdsserver

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	manager "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/coordinator/discovery"
)

// endpointsOf returns a group's instances by zone. An instance without a numeric address, or
// without a port if none is given, is left out: xDS cannot say where it is. Of two instances at one
// address, one is left out, because gRPC would refuse the whole resource.
func endpointsOf(name string, all []discovery.Endpoint, port uint16) *endpoint.ClusterLoadAssignment {
	zones := map[string][]*endpoint.LbEndpoint{}
	taken := map[netip.AddrPort]bool{}
	for _, e := range all {
		at, numeric := e.IP()
		if port != 0 {
			at = netip.AddrPortFrom(at.Addr(), port)
		}
		if !numeric || at.Port() == 0 || taken[at] {
			continue
		}
		taken[at] = true
		zones[e.Zone] = append(zones[e.Zone], &endpoint.LbEndpoint{
			HealthStatus:        core.HealthStatus_HEALTHY,
			LoadBalancingWeight: wrapperspb.UInt32(1),
			HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: &core.Address{
				Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
					Address:       at.Addr().String(),
					PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(at.Port())},
				}},
			}}},
		})
	}
	out := &endpoint.ClusterLoadAssignment{ClusterName: name}
	for zone, members := range zones {
		out.Endpoints = append(out.Endpoints, &endpoint.LocalityLbEndpoints{
			Locality: &core.Locality{Zone: zone}, LbEndpoints: members,
			LoadBalancingWeight: wrapperspb.UInt32(uint32(len(members))), // each instance gets the same
		})
	}
	slices.SortFunc(out.Endpoints, func(a, b *endpoint.LocalityLbEndpoints) int {
		return cmp.Compare(a.Locality.Zone, b.Locality.Zone)
	})
	return out
}

// clusterOf returns a cluster whose endpoints come over the same stream.
func clusterOf(name string) *cluster.Cluster {
	return &cluster.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS},
		EdsClusterConfig: &cluster.Cluster_EdsClusterConfig{EdsConfig: &core.ConfigSource{
			ResourceApiVersion:    core.ApiVersion_V3,
			ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
		}},
		LbPolicy: cluster.Cluster_ROUND_ROBIN,
	}
}

// listenerOf returns what a gRPC client looks up first. Its routes are part of it: everything goes
// to the group.
func listenerOf(name string) (*listener.Listener, error) {
	filter, err := anypb.New(&router.Router{})
	if err != nil {
		return nil, fmt.Errorf("encode the router of %s: %w", name, err)
	}
	api, err := anypb.New(&manager.HttpConnectionManager{
		RouteSpecifier: &manager.HttpConnectionManager_RouteConfig{RouteConfig: &route.RouteConfiguration{
			Name: name,
			VirtualHosts: []*route.VirtualHost{{
				Name: name, Domains: []string{"*"},
				Routes: []*route.Route{{
					Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: ""}},
					Action: &route.Route_Route{Route: &route.RouteAction{
						ClusterSpecifier: &route.RouteAction_Cluster{Cluster: name},
					}},
				}},
			}},
		}},
		HttpFilters: []*manager.HttpFilter{{
			Name: "router", ConfigType: &manager.HttpFilter_TypedConfig{TypedConfig: filter},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the listener of %s: %w", name, err)
	}
	return &listener.Listener{Name: name, ApiListener: &listener.ApiListener{ApiListener: api}}, nil
}
