"""From annotations to results: time budgets, transitions, zones, movement, and statistics of groups.

Tables are in long form: one row for each unit (recording, individual, subject, zone, time bin) and behavior. Every scalar entry of
`Recording.metadata`, such as the columns ``treatment`` and ``sex`` of a manifest, is a column. Unobserved time is excluded, and the
coverage is beside every value.
"""
