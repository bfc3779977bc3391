"""Responses that are computed when they are requested: slices of arrays, statistics, and descriptions of nodes.

| URL | content |
|---|---|
| ``A.npy A.csv A.json A.png?SELECTION`` | elements of array A, decoded by CF |
| ``A.raw?SELECTION`` | elements as they are in the array, little-endian, in C order |
| ``A.stats?SELECTION`` | minimum, maximum, mean, percentiles and histogram |
| ``A.chunks?SELECTION`` | the chunks of a selection, and which of them are stored |
| ``N/?json`` | what node N is, and its members |

A key of the hierarchy has precedence: these are answers where there would be 404.
"""
