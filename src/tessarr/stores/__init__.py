"""Stores: the places where keys have bytes. `base` is the contract; every other module is one kind of place.

`url.store_from` turns what a user gives (a path, a URL, a mapping, a store) into a store.
"""
