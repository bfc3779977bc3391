"""The options of client libraries that cannot hold a credential.

Any other option may hold one, and is left out of names, errors, logs and pickles (`tessarr.stores.remote.credentials`).
"""

from __future__ import annotations

_OBJECT_STORES = """
bucket bucket_name container_name region default_region region_name endpoint endpoint_url base_url
virtual_hosted_style_request unsigned_payload checksum checksum_algorithm imdsv1_fallback metadata_endpoint
skip_signature disable_tagging s3_express request_payer conditional_put copy_if_not_exists server_side_encryption
sse_bucket_key_enabled account_name use_emulator use_fabric_endpoint msi_endpoint storage_class storage_endpoint
"""
_HTTP = """
timeout connect_timeout read_timeout pool_idle_timeout pool_max_idle_per_host allow_http allow_invalid_certificates
http1_only http2_only http2_keep_alive_interval http2_keep_alive_timeout http2_keep_alive_while_idle
http2_max_frame_size randomize_addresses user_agent default_content_type proxy_url proxy_excludes proxy_ca_certificate
root_certificate verify use_ssl ssl trust_env retries max_retries retry_config retry_timeout init_backoff max_backoff
base backoff allow_redirects
"""
_FSSPEC = """
anon requester_pays host hostname port protocol target_protocol target_options remote_protocol remote_options fo url
path root cache_storage check_files same_names expiry_time cache_check cache_type cache_options compression mode
block_size default_block_size default_cache_type default_fill_cache fill_cache version_aware use_listings_cache
listings_expiry_time max_paths skip_instance_cache asynchronous loop batch_size max_concurrency project location
access consistency encoded simple_links same_scheme size_policy auto_mkdir org repo sha branch ref revision repo_type
kwargs client_kwargs config_kwargs config s3_additional_kwargs addressing_style s3 max_pool_connections
connect_attempts signature_version forbidden_is_missing references storage_options allow_other lazy max_gap max_block
cache_size simple_templates skip_instance_cache concurrency
"""
_DATABASES = """
db database collection prefix unix_socket_path socket_timeout socket_connect_timeout socket_keepalive retry_on_timeout
max_connections decode_responses health_check_interval encoding encoding_errors client_name ssl_cert_reqs ssl_ca_certs
ssl_ca_path ssl_check_hostname single_connection_client tls tlscafile tlsallowinvalidcertificates
tlsallowinvalidhostnames authsource authmechanism replicaset directconnection serverselectiontimeoutms
connecttimeoutms sockettimeoutms maxpoolsize minpoolsize retrywrites retryreads w journal readpreference appname
tz_aware connect document_class uuidrepresentation
"""
PUBLIC_NAMES = frozenset(f"{_OBJECT_STORES} {_HTTP} {_FSSPEC} {_DATABASES}".split())
"""Names in lower case; those of obstore without the prefixes ``aws_``, ``google_`` and ``azure_``."""
