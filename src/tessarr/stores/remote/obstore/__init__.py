"""Object stores (S3, Google Cloud Storage, Azure, HTTP) through the obstore package."""
