"""Cutting in processes of their own, which a grammar may crash, hang or fill without harm."""
