"""Convert files by references: scan them, check that they agree, and join their arrays as virtual arrays.

scan     what one file holds, and where its chunks are, without its values but for those of coordinates (`scan`)
agree    the order of many files along a dimension, and everything in which they must not differ (`agree`)
join     the arrays of the files as virtual arrays over one store of references (`joined`, `files_store`)
unpack   CF packing undone (`unpack`)
"""
